//! An async client that never retries by itself and knows which errors are definite.
