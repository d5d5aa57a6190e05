//! Links the program of a debug build to a fixed address. The tests start it some ten thousand times, and
//! 140,000 addresses to correct are half of the memory that each start touches. A release keeps its random
//! address, as does any build for another system.

#![expect(clippy::disallowed_macros, reason = "cargo reads it")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
