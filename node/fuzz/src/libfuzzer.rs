//! The front end for long runs. libFuzzer calls the target whose name is in the variable `FUZZ_TARGET`.

#![no_main]
#![allow(unsafe_code, missing_docs, reason = "the macro exports a function by its C name")]

use std::sync::OnceLock;

use node_fuzz::{Target, target};

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
        target(&name).expect("FUZZ_TARGET names a target that there is")
    });
    (target.run)(data);
});
