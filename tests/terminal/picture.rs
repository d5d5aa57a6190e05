//! Screens as an SVG file, in the colors that they have.

use std::fmt::Write as _;
use std::time::Duration;

use vt100::{Cell, Color, Screen};

/// Size of a character, in pixels of the file.
const WIDTH: usize = 8;
const HEIGHT: usize = 18;
/// Around the text.
const MARGIN: usize = 12;

const BACKGROUND: &str = "#1e1e2e";
const FOREGROUND: &str = "#cdd6f4";
/// The first eight colors of a terminal.
const PALETTE: [&str; 8] = [
    "#45475a", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#f5c2e7", "#94e2d5", "#bac2de",
];

/// The lines of the screen down to the last one that says anything.
pub(super) fn svg(screen: &Screen) -> String {
    let shot = Shot::of(screen);
    format!(
        "{}{}</g>\n</svg>\n",
        beginning(shot.rows, shot.columns),
        shot.lines
    )
}

/// What a screen shows.
pub(super) struct Shot {
    rows: usize,
    columns: usize,
    /// An element for each stretch of a line.
    lines: String,
}

/// Pictures that follow each other, again and again, each with the time that it stays. Where nothing may move, the
/// last one is shown.
pub(super) fn moving(shots: &[(Duration, Shot)]) -> String {
    let whole: Duration = shots.iter().map(|(time, _)| *time).sum();
    let rows = shots.iter().map(|(_, shot)| shot.rows).max().unwrap_or_default();
    let columns = shots.first().map_or(0, |(_, shot)| shot.columns);
    let (mut style, mut lines) = (String::new(), String::new());
    let mut begin = Duration::ZERO;
    for (number, (time, shot)) in shots.iter().enumerate() {
        let [from, to] = [begin, begin + *time].map(|at| 100.0 * at.as_secs_f64() / whole.as_secs_f64());
        begin += *time;
        let _ = writeln!(
            style,
            "@keyframes s{number} {{0% {{visibility: hidden}} {from:.2}% {{visibility: visible}} \
             {to:.2}% {{visibility: hidden}}}}"
        );
        let _ = writeln!(
            lines,
            "<g style=\"animation-name: s{number}\">\n{}</g>",
            shot.lines
        );
    }
    format!(
        "{}<style>\ng g {{visibility: hidden; animation: {}s step-end infinite}}\n\
         g g:last-child {{visibility: visible}}\n\
         @media (prefers-reduced-motion: reduce) {{g g {{animation: none}}}}\n{style}</style>\n{lines}</g>\n</svg>\n",
        beginning(rows, columns),
        whole.as_secs_f64(),
    )
}

/// The file down to the text. Browsers no longer take `xml:space` from the elements around a text.
fn beginning(rows: usize, columns: usize) -> String {
    let width = columns * WIDTH + 2 * MARGIN;
    let height = rows * HEIGHT + 2 * MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, monospace\" font-size=\"13\" fill=\"{FOREGROUND}\" xml:space=\"preserve\">\n\
         <style>text {{white-space: pre}}</style>\n"
    )
}

impl Shot {
    pub(super) fn of(screen: &Screen) -> Self {
        let (rows, columns) = screen.size();
        let is_blank = |row: &u16| {
            screen
                .rows(0, columns.get())
                .nth(usize::from(*row))
                .is_none_or(|row| row.trim().is_empty())
        };
        let rows = (0..rows.get())
            .rev()
            .find(|row| !is_blank(row))
            .map_or(0, |row| usize::from(row) + 1);
        let columns = usize::from(columns.get());
        let mut lines = String::new();
        for row in 0..rows {
            let y = MARGIN + row * HEIGHT + 13;
            let mut column = 0;
            for (style, text) in stretches(screen, row, columns) {
                let x = MARGIN + column * WIDTH;
                let characters = text.chars().count();
                column += characters;
                let length = characters * WIDTH;
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(
                    lines,
                    "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\"{style}>{text}</text>"
                );
            }
        }
        Self { rows, columns, lines }
    }
}

/// What stands in a line, by style.
fn stretches(screen: &Screen, row: usize, columns: usize) -> Vec<(String, String)> {
    let row = u16::try_from(row).expect("a row of a terminal");
    let cells = (0..columns).filter_map(|column| screen.cell(row, u16::try_from(column).ok()?));
    let mut stretches: Vec<(String, String)> = Vec::new();
    for cell in cells {
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match stretches.last_mut() {
            Some((known, stretch)) if *known == style(cell) => stretch.push_str(text),
            _ => stretches.push((style(cell), text.to_owned())),
        }
    }
    if let Some((_, last)) = stretches.last_mut() {
        last.truncate(last.trim_end().len());
    }
    stretches.retain(|(_, text)| !text.is_empty());
    stretches
}

fn style(cell: &Cell) -> String {
    let mut style = Vec::new();
    if let Color::Idx(index) = cell.fgcolor()
        && let Some(color) = PALETTE.get(usize::from(index % 8))
    {
        style.push(format!(" fill=\"{color}\""));
    }
    if cell.bold() {
        style.push(" font-weight=\"bold\"".to_owned());
    }
    if cell.dim() {
        style.push(" opacity=\"0.6\"".to_owned());
    }
    style.concat()
}
