//! A screen as an SVG file, in the colors that it has.

use std::fmt::Write as _;

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

/// The lines of the screen down to the last one that says anything. Browsers no longer take `xml:space` from the
/// elements around a text.
pub(super) fn svg(screen: &Screen) -> String {
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
    let width = usize::from(columns.get()) * WIDTH + 2 * MARGIN;
    let height = rows * HEIGHT + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, monospace\" font-size=\"13\" fill=\"{FOREGROUND}\" xml:space=\"preserve\">\n\
         <style>text {{white-space: pre}}</style>\n"
    );
    for row in 0..rows {
        let y = MARGIN + row * HEIGHT + 13;
        let mut column = 0;
        for (style, text) in stretches(screen, row, usize::from(columns.get())) {
            let x = MARGIN + column * WIDTH;
            let characters = text.chars().count();
            column += characters;
            let length = characters * WIDTH;
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                picture,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\"{style}>{text}</text>"
            );
        }
    }
    picture + "</g>\n</svg>\n"
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
