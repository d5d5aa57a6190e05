//! Aligns the columns of tables in the style of kubectl, so that they fit into a terminal. What is in the tables is decided
//! in `documents/`.

use super::paint::{cut_middle, fit};
use crate::model::text::escape_as_one_line;

/// Formats rows as left-aligned columns, three blanks apart, in lines of at most `width` characters. If the rows are
/// wider, drops the `dispensable` columns one after the other, then cuts cells: in the middle, and in the last column,
/// which may have sentences, at the end.
pub(in crate::report) fn format_table(
    mut rows: Vec<Vec<String>>,
    width: usize,
    dispensable: &[&str],
) -> Vec<String> {
    for title in dispensable {
        if align_columns(&rows)
            .iter()
            .all(|line| line.chars().count() <= width)
        {
            break;
        }
        let header = rows.first();
        if let Some(place) = header.and_then(|header| header.iter().position(|cell| cell == title)) {
            for row in &mut rows {
                row.remove(place);
            }
        }
    }
    let widths = fitting_widths(&rows, width);
    for row in &mut rows {
        let last = row.len().saturating_sub(1);
        for (place, (cell, width)) in row.iter_mut().zip(&widths).enumerate() {
            *cell = if place == last {
                fit(cell, *width)
            } else {
                cut_middle(cell, *width)
            };
        }
    }
    align_columns(&rows).iter().map(|line| fit(line, width)).collect()
}

/// Formats rows as left-aligned columns that are as wide as their widest cell.
pub(in crate::report) fn align_columns(rows: &[Vec<String>]) -> Vec<String> {
    let widths = natural_widths(rows);
    let mut lines = Vec::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{:width$}", escape_as_one_line(cell)))
            .collect();
        lines.push(cells.join("   ").trim_end().to_owned());
    }
    lines
}

/// Returns the width of the widest cell of each column.
fn natural_widths(rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = escape_as_one_line(cell).chars().count().max(*width);
        }
    }
    widths
}

/// The least width to which a column is cut.
const MIN_COLUMN_WIDTH: usize = 12;

/// Returns widths of columns that fit into `width` characters: takes from the widest column until they fit, or until
/// all are at [`MIN_COLUMN_WIDTH`].
fn fitting_widths(rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let mut widths = natural_widths(rows);
    while widths.iter().sum::<usize>() + 3 * widths.len().saturating_sub(1) > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_COLUMN_WIDTH => *widest -= 1,
            _ => break,
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispensable_columns_make_room() {
        let rows: Vec<Vec<String>> = [["NAME", "KINDS", "TOOL"], ["a-long-name", "1", "x/v1"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec();
        let fit = |width| format_table(rows.clone(), width, &["TOOL", "KINDS"]);
        assert_eq!(
            fit(26),
            ["NAME          KINDS   TOOL", "a-long-name   1       x/v1"]
        );
        assert_eq!(fit(20), ["NAME          KINDS", "a-long-name   1"]);
        assert_eq!(fit(8), ["NAME", "a-long-…"]);
        let sentence = [["NAME", "MESSAGE"], ["web", "fix the login page"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec();
        assert_eq!(
            format_table(sentence, 22, &[]),
            ["NAME   MESSAGE", "web    fix the login …"]
        );
        let long: Vec<Vec<String>> = [
            ["NAMESPACE", "SET"],
            ["a-long-namespace", "configmap/a-long-name"],
        ]
        .map(|row| row.map(str::to_owned).to_vec())
        .to_vec();
        assert_eq!(
            format_table(long, 30, &[]),
            ["NAMESPACE        SET", "a-lo…namespace   configmap/a-…"]
        );
    }
}
