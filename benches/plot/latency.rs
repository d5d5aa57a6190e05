//! Seconds of all contenders over links with latency: the first apply, and an unchanged one. The axis of
//! seconds is logarithmic.

use super::{GRID, begin, color, element, line, not_measured};
use crate::contenders::Contender;
use crate::goals::number;
use crate::results::{LinkStep, Results};
use crate::scenarios::OBJECTS_OF_LINKS;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
/// From the left edge of one panel to that of the next; the names of contenders are in between.
const NEXT_PANEL: f64 = WIDTH + 200.0;
/// Between the names of two contenders.
const LINE: f64 = 15.0;
/// Seconds at the lower edge.
const LEAST: f64 = 0.01;
/// Powers of ten from the lower edge to the upper one.
const DECADES: f64 = 5.0;

/// The picture; without any lines where links were not measured.
pub(crate) fn svg(results: &Results) -> String {
    let mut svg = begin(
        LEFT + NEXT_PANEL + WIDTH + 160.0,
        TOP + HEIGHT + 70.0,
        "Seconds over links with latency",
    );
    let mut links: Vec<u64> = results.links.iter().map(|run| run.milliseconds).collect();
    links.sort_unstable();
    links.dedup();
    for (place, (step, title)) in [
        (LinkStep::First, "First apply, seconds"),
        (LinkStep::Again, "Unchanged, seconds"),
    ]
    .into_iter()
    .enumerate()
    {
        let left = if place == 0 { LEFT } else { LEFT + NEXT_PANEL };
        panel(&mut svg, results, &links, left, (step, title));
    }
    element(
        &mut svg,
        format_args!(
            "<text x=\"{LEFT}\" y=\"{}\">{OBJECTS_OF_LINKS} objects, over the round trip of the link in milliseconds</text>",
            TOP + HEIGHT + 48.0
        ),
    );
    svg.push_str("</svg>\n");
    svg
}

fn y(seconds: f64) -> f64 {
    let height = (seconds / LEAST).log10() / DECADES;
    TOP + HEIGHT * (1.0 - height.clamp(0.0, 1.0))
}

fn panel(svg: &mut String, results: &Results, links: &[u64], left: f64, (step, title): (LinkStep, &str)) {
    let right = left + WIDTH;
    let longest = links.last().copied().unwrap_or_default().max(1);
    let x = |milliseconds: u64| left + WIDTH * number(milliseconds) / number(longest);
    element(
        svg,
        format_args!(
            "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{title}</text>",
            TOP - 20.0
        ),
    );
    for value in [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0] {
        let y = y(value);
        element(
            svg,
            format_args!(
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"{GRID}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                left - 6.0,
                y + 4.0
            ),
        );
    }
    for milliseconds in links {
        let x = x(*milliseconds);
        element(
            svg,
            format_args!(
                "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"{GRID}\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{milliseconds}</text>",
                TOP + HEIGHT + 18.0,
                bottom = TOP + HEIGHT
            ),
        );
    }
    // Where each line ends, and whose it is.
    let mut names: Vec<(f64, Contender)> = Vec::new();
    for contender in Contender::ALL {
        let name = contender.to_string();
        let points: Vec<(f64, f64)> = links
            .iter()
            .filter_map(|milliseconds| {
                let key = (*milliseconds, step, &*name);
                let seconds = results.median_over_link(key, |run| Some(run.seconds))?;
                Some((x(*milliseconds), y(seconds)))
            })
            .collect();
        let Some((_, end)) = points.last() else {
            continue;
        };
        names.push((*end, contender));
        line(svg, &points, color(contender), "none");
    }
    if names.is_empty() {
        not_measured(svg, left + WIDTH / 2.0, TOP + HEIGHT / 2.0);
    }
    names.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    for (y, contender) in apart(names) {
        element(
            svg,
            format_args!(
                "<text x=\"{}\" y=\"{:.1}\" fill=\"{}\">{contender}</text>",
                right + 10.0,
                y + 4.0,
                color(contender)
            ),
        );
    }
}

/// Moves names that are sorted from top to bottom, so that none covers another: first down, then up from
/// the lower edge.
fn apart(mut names: Vec<(f64, Contender)>) -> Vec<(f64, Contender)> {
    let mut least = f64::NEG_INFINITY;
    for (y, _) in &mut names {
        *y = y.max(least);
        least = *y + LINE;
    }
    let mut most = TOP + HEIGHT;
    for (y, _) in names.iter_mut().rev() {
        *y = y.min(most);
        most = *y - LINE;
    }
    names
}
