//! The stories of Rollcall live in this package's `tests/` folder; the library itself is empty.
