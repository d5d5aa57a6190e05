//! Pictures of what was measured, as SVG. Each has a light background of its own, so that it can be read on
//! dark pages, too.

mod latency;
mod size;

use std::fmt::Write as _;

use crate::contenders::Contender;
use crate::options::Tool;

pub(crate) use latency::svg as latency;
pub(crate) use size::svg as size;

/// The background of all pictures; text on it is black.
const BACKGROUND: &str = "#ffffff";
/// Lines of the grid.
const GRID: &str = "#d0d7de";

/// The color of a contender in all pictures.
fn color(contender: Contender) -> &'static str {
    match contender {
        Contender::Ours => "#0969da",
        Contender::Raw => "#6e7781",
        Contender::KubectlServerSide => "#cf222e",
        Contender::KubectlClientSide => "#953800",
        Contender::Built(Tool::Kapp) => "#1a7f37",
        Contender::Built(Tool::Helm) => "#8250df",
        Contender::Built(Tool::Kpt) => "#bf3989",
    }
}

/// The beginning of a picture of this size; it ends with `</svg>`.
fn begin(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    )
}

fn element(svg: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(svg, "{arguments}");
}

/// Draws a line with a dot at each of these points. `dashes` are those of `stroke-dasharray`.
fn line(svg: &mut String, points: &[(f64, f64)], color: &str, dashes: &str) {
    let mut path = String::new();
    for (x, y) in points {
        // Writing into a String cannot fail.
        let _ = write!(path, " {x:.1},{y:.1}");
        element(
            svg,
            format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"),
        );
    }
    element(
        svg,
        format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>",
            path.trim_start()
        ),
    );
}

/// Says in the middle of an empty panel why it is empty.
fn not_measured(svg: &mut String, x: f64, y: f64) {
    element(
        svg,
        format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#57606a\">not measured</text>"),
    );
}
