//! What clients do, and what must then be true.
