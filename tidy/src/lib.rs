//! Nothing: the invariants of the code base are tests, in `tests/`.
