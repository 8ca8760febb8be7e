//! A finished run as terminal text, HTML page, JUnit XML and JSON.
