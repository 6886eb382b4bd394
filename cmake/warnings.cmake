# The one place where warnings are chosen: the interface target sw_warnings. tests/build proves that
# they reach gcc and clang.

option(SW_WERROR "Treat warnings as errors" OFF)

add_library(sw_warnings INTERFACE)
target_compile_options(sw_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
  -Wconversion -Wno-sign-conversion   # narrowing is reported; mixed signs in index arithmetic are not
  $<$<BOOL:${SW_WERROR}>:-Werror>)
