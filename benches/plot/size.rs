//! Time, memory and requests over the number of objects as an SVG picture, both axes logarithmic:
//! what grows with the objects is a line as steep as the dotted one.

use super::{GRID, begin, color, element, line, not_measured};
use crate::contenders::Contender;
use crate::goals::{count, number};
use crate::results::{Measurement, Results, Step};
use crate::scenarios::{large_sizes, sizes};

const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 50.0;
/// From the upper edge of one row to that of the next.
const NEXT_ROW: f64 = 390.0;
/// From the left edge of one panel to that of the next.
const NEXT_PANEL: f64 = WIDTH + 80.0;

/// Contenders that the sizes are measured with.
const CONTENDERS: [Contender; 3] = [Contender::Ours, Contender::Raw, Contender::KubectlServerSide];
/// The color of what is pruned.
const PRUNED: &str = "#bc4c00";

/// The picture; without any lines where sizes were not measured.
pub(crate) fn svg(results: &Results) -> String {
    let mut svg = begin(
        1230.0,
        780.0,
        "Time, memory and requests over the number of objects",
    );
    let panels = |top: f64, sizes: [usize; 3]| {
        let panel = |place: f64, title, smallest, decades| Panel {
            left: LEFT + place * NEXT_PANEL,
            top,
            title,
            smallest,
            decades,
            sizes,
        };
        [
            panel(0.0, "Time, seconds", 0.01, 5.0),
            panel(1.0, "Peak memory of the client, MB", 1.0, 3.0),
            panel(2.0, "Requests", 1.0, 5.0),
        ]
    };
    let (sizes, large_sizes) = (sizes(results.objects), large_sizes(results.objects));
    for panel in panels(TOP, sizes)
        .iter()
        .chain(&panels(TOP + NEXT_ROW, large_sizes))
    {
        panel.axes(&mut svg);
    }
    for contender in CONTENDERS {
        let (name, color) = (contender.to_string(), color(contender));
        for (step, dashes) in [(Step::GrowthFirst, "5 4"), (Step::GrowthAgain, "none")] {
            row(
                &mut svg,
                results,
                &panels(TOP, sizes),
                (step, &name),
                &Pen { color, dashes },
            );
        }
    }
    let ours = Contender::Ours.to_string();
    let color_of_ours = color(Contender::Ours);
    for (step, color, dashes) in [
        (Step::LargeFirst, color_of_ours, "5 4"),
        (Step::LargeAgain, color_of_ours, "none"),
        (Step::LargePruned, PRUNED, "none"),
    ] {
        let pen = Pen { color, dashes };
        row(
            &mut svg,
            results,
            &panels(TOP + NEXT_ROW, large_sizes),
            (step, &ours),
            &pen,
        );
    }
    for (top, steps) in [
        (TOP, [Step::GrowthFirst, Step::GrowthAgain]),
        (TOP + NEXT_ROW, [Step::LargeFirst, Step::LargeAgain]),
    ] {
        if !results.measurements.iter().any(|run| steps.contains(&run.step)) {
            not_measured(&mut svg, LEFT + NEXT_PANEL + WIDTH / 2.0, top + HEIGHT / 2.0);
        }
    }
    legend(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// Time, memory and requests of one step.
fn row(
    svg: &mut String,
    results: &Results,
    [time, memory, requests]: &[Panel; 3],
    key: (Step, &str),
    pen: &Pen,
) {
    time.curve(svg, results, key, pen, |run| Some(run.seconds));
    memory.curve(svg, results, key, pen, |run| Some(number(run.peak_memory?) / 1e6));
    requests.curve(svg, results, key, pen, |run| Some(number(run.requests.most())));
}

struct Pen {
    color: &'static str,
    dashes: &'static str,
}

struct Panel {
    left: f64,
    top: f64,
    title: &'static str,
    /// The value at the lower edge.
    smallest: f64,
    /// Powers of ten from the lower edge to the upper one.
    decades: f64,
    sizes: [usize; 3],
}

impl Panel {
    fn x(&self, objects: usize) -> f64 {
        self.left + WIDTH * (count(objects) / count(self.sizes[0])).log10() / self.span().log10()
    }

    /// The largest size in units of the smallest.
    fn span(&self) -> f64 {
        count(self.sizes[2]) / count(self.sizes[0])
    }

    fn y(&self, value: f64) -> f64 {
        let height = (value / self.smallest).log10() / self.decades;
        self.top + HEIGHT * (1.0 - height.clamp(0.0, 1.0))
    }

    fn axes(&self, svg: &mut String) {
        let (left, right, bottom) = (self.left, self.left + WIDTH, self.top + HEIGHT);
        element(
            svg,
            format_args!(
                "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}</text>",
                self.top - 16.0,
                self.title
            ),
        );
        let mut value = self.smallest;
        while value <= self.smallest * 10_f64.powf(self.decades) * 1.01 {
            let y = self.y(value);
            element(
                svg,
                format_args!("<path d=\"M{left} {y:.1}H{right}\" stroke=\"{GRID}\"/>"),
            );
            element(
                svg,
                format_args!(
                    "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                    left - 6.0,
                    y + 4.0
                ),
            );
            value *= 10.0;
        }
        for size in self.sizes {
            let x = self.x(size);
            element(
                svg,
                format_args!("<path d=\"M{x:.1} {}V{bottom}\" stroke=\"{GRID}\"/>", self.top),
            );
            element(
                svg,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{size}</text>",
                    bottom + 18.0
                ),
            );
        }
        // As steep as growth by the objects, no more and no less.
        let (from, to) = (self.y(self.smallest), self.y(self.smallest * self.span()));
        element(
            svg,
            format_args!(
                "<path d=\"M{left} {from:.1}L{right} {to:.1}\" stroke=\"#8c959f\" stroke-dasharray=\"1 4\"/>"
            ),
        );
    }

    fn curve(
        &self,
        svg: &mut String,
        results: &Results,
        (step, contender): (Step, &str),
        pen: &Pen,
        value: impl Fn(&Measurement) -> Option<f64>,
    ) {
        let points: Vec<(f64, f64)> = self
            .sizes
            .into_iter()
            .filter_map(|size| {
                let median = results.median_of((step, contender, size), &value)?;
                Some((self.x(size), self.y(median)))
            })
            .collect();
        if points.is_empty() {
            return;
        }
        line(svg, &points, pen.color, pen.dashes);
    }
}

fn legend(svg: &mut String) {
    let y = TOP + HEIGHT + 48.0;
    let mut x = LEFT;
    for contender in CONTENDERS {
        let color = color(contender);
        element(
            svg,
            format_args!(
                "<path d=\"M{x} {}h24\" stroke=\"{color}\" stroke-width=\"3\"/><text x=\"{}\" y=\"{y}\">{contender}</text>",
                y - 4.0,
                x + 30.0
            ),
        );
        x += 170.0;
    }
    element(
        svg,
        format_args!(
            "<text x=\"{LEFT}\" y=\"{}\">over the number of objects; dashed: first apply, solid: unchanged; \
             dotted: proportional to the number of objects</text>",
            y + 24.0
        ),
    );
    element(
        svg,
        format_args!(
            "<text x=\"{LEFT}\" y=\"{}\">kubectl-applyset alone, with small objects; dashed: first apply, solid: unchanged, \
             orange: all but 100 pruned</text>",
            y + NEXT_ROW
        ),
    );
}
