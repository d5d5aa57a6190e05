//! A terminal of a given size: what is written to it is kept as the screen that a person
//! would see.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Lines of a terminal, if nothing else is wanted.
const ROWS: NonZero<u16> = NonZero::new(24).expect("not zero");

/// A terminal.
pub(crate) struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<Screen>>,
    /// The end that programs write to. Held open, so that what the last one has written is
    /// not lost when it ends.
    device: PathBuf,
    _held: File,
}

struct Screen {
    parser: vt100::Parser,
    /// Everything that was written, escape sequences included.
    written: Vec<u8>,
}

impl Terminal {
    /// One that is this many characters wide.
    pub(crate) fn new(columns: u16) -> Self {
        Self::with_rows(columns, ROWS.get())
    }

    /// One that is this many characters wide and this many lines high.
    pub(crate) fn with_rows(columns: u16, rows: u16) -> Self {
        let rows = NonZero::new(rows).expect("a terminal with lines");
        let columns = NonZero::new(columns).expect("a terminal with columns");
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new())
            .expect("a name")
            .into_string()
            .expect("UTF-8");
        let size = Winsize {
            ws_row: rows.get(),
            ws_col: columns.get(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).expect("a size");
        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(Screen {
            parser: vt100::Parser::new(rows, columns, 0),
            written: Vec::new(),
        }));
        let device = PathBuf::from(name);
        let held = open(&device);
        let mut output = keyboard.try_clone().expect("a second handle");
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = output.read(&mut bytes) {
                let mut screen = shown.lock().expect("no panic");
                screen.parser.process(&bytes[..count]);
                screen.written.extend(&bytes[..count]);
            }
        });
        Self {
            keyboard,
            screen,
            device,
            _held: held,
        }
    }

    /// Shows text as if a program had printed it.
    pub(crate) fn show(&self, text: &str) {
        let mut device = open(&self.device);
        device.write_all(text.as_bytes()).expect("a terminal");
    }

    /// An end for a program.
    pub(super) fn end(&self) -> Stdio {
        Stdio::from(open(&self.device))
    }

    /// The screen as it is now, without what is blank at the end of lines and below.
    pub(crate) fn screen(&self) -> String {
        let screen = self.screen.lock().expect("no panic");
        screen.parser.screen().contents()
    }

    /// The lines of the screen, as they are seen.
    pub(crate) fn rows(&self) -> Vec<String> {
        let screen = self.screen.lock().expect("no panic");
        let screen = screen.parser.screen();
        let rows = screen.rows(0, screen.size().1.get());
        let mut rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        while rows.pop_if(|row| row.is_empty()).is_some() {}
        rows
    }

    /// What a function draws of the screen as it is now.
    pub(crate) fn picture<T>(&self, draw: impl Fn(&vt100::Screen) -> T) -> T {
        let screen = self.screen.lock().expect("no panic");
        draw(screen.parser.screen())
    }

    /// Everything that was written so far, escape sequences included.
    pub(crate) fn written(&self) -> String {
        let screen = self.screen.lock().expect("no panic");
        String::from_utf8_lossy(&screen.written).into_owned()
    }

    /// Types a text.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("typed");
    }
}

fn open(device: &PathBuf) -> File {
    let opened = OpenOptions::new().read(true).write(true).open(device);
    opened.expect("the device of the terminal")
}
