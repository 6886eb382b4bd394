"""Models of the fixture programs, in plain JAX: one module per family, one function per model."""
