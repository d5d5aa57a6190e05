//! Passes settings to the linker that Cargo has no profile setting for.

#![expect(clippy::disallowed_macros, reason = "cargo reads it")]

use std::path::Path;
use std::{env, fs};

/// Drops the tables for unwinding the stack, a tenth of the program. Nothing reads them in a program that aborts when it
/// panics: a backtrace could only hold addresses, because the program is stripped as well. The tables of the C runtime
/// stay, since its start and end refer to them.
const DROP_UNWIND_TABLES: &str =
    "SECTIONS { /DISCARD/ : { *(EXCLUDE_FILE(*crtbegin*.o *crtend*.o) .eh_frame) } } INSERT AFTER .text;\n";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    if is("PROFILE", "release") {
        let directory = env::var("OUT_DIR").expect("cargo sets it");
        let script = Path::new(&directory).join("drop-unwind-tables.ld");
        fs::write(&script, DROP_UNWIND_TABLES).expect("cargo has created the directory");
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
    // The tests start a debug build some ten thousand times, and 140,000 addresses to correct are half of the memory that
    // each start touches. A release keeps its random address.
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
