# The libraries from outside, and the table of which folder of src/ links which.
# docs/dependencies.md gives the reason for each and its alternative.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
find_package(MPI REQUIRED COMPONENTS C)

# PUBLIC: its header is seen by the folders below. PRIVATE: it is linked, and not seen.
set(SW_LINKS_base PUBLIC PkgConfig::JANSSON Threads::Threads m
                  PRIVATE PkgConfig::YAML PkgConfig::ZLIB PkgConfig::XXHASH)
# Only its header: the library is loaded when something multiplies (src/interpret/blas.h).
set(SW_LINKS_interpret PRIVATE ${CMAKE_DL_LIBS})
set(SW_INCLUDES_interpret ${OPENBLAS_INCLUDE_DIRS})
set(SW_LINKS_transport PRIVATE MPI::MPI_C ${CMAKE_DL_LIBS})
# A benchmark's peers.
set(SW_BENCH_LINKS_collectives MPI::MPI_C)
