//! A history goes in, a verdict comes out.
