//! A deterministic world for members: one seed decides all.
