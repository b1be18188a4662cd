//! Columns of text that line up.

use crate::style::{Ink, Style};

/// One piece of text in a table. It may have a second part in faint ink, set to the left of its own sub-column.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    aside: String,
    ink: Ink,
}

impl Cell {
    /// Text alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(crate) fn ink(mut self, ink: Ink) -> Self {
        self.ink = ink;
        self
    }

    pub(crate) fn aside(mut self, aside: impl Into<String>) -> Self {
        self.aside = aside.into();
        self
    }
}

/// Where text stands in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At its left end, as words.
    Left,
    /// At its right end, as figures.
    Right,
}

/// A column: its heading of two lines, and how soon it is left out where the line is too short (0: never).
#[derive(Debug)]
struct Column {
    group: String,
    head: String,
    align: Align,
    drop: u8,
    cells: Vec<Cell>,
    /// Blanks added to the text's width.
    least: usize,
}

/// A table under construction, column by column.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
}

/// Blanks between columns.
const BETWEEN: usize = 2;

impl Table {
    /// Adds a column. Neighbours of the same non-empty group share the upper line of the heading.
    pub fn column(
        &mut self,
        (group, head): (&str, &str),
        align: Align,
        drop: u8,
        cells: impl IntoIterator<Item = Cell>,
    ) {
        let (group, head, cells) = (group.to_owned(), head.to_owned(), cells.into_iter().collect());
        self.columns.push(Column { group, head, align, drop, cells, least: 0 });
    }

    /// The lines, without the columns that have nothing to show or no place.
    pub fn text(mut self, style: Style) -> String {
        self.columns.retain(|c| c.drop == 0 || c.cells.iter().any(|cell| !cell.text.is_empty()));
        self.make_room_for_groups();
        while self.width() > style.width {
            let droppable = self.columns.iter().enumerate().filter(|(_, c)| c.drop > 0);
            let Some((at, _)) = droppable.max_by_key(|(at, c)| (c.drop, *at)) else { break };
            self.columns.remove(at);
            self.make_room_for_groups();
        }
        let mut out = String::new();
        if self.columns.iter().any(|c| !c.group.is_empty()) {
            push_line(&mut out, &self.groups(), Ink::Strong, style);
        }
        let heads = self.columns.iter().map(|c| c.place(&Cell::new(c.head.as_str()), style, Place::Head));
        push_line(&mut out, &heads.collect::<Vec<_>>().join(&" ".repeat(BETWEEN)), Ink::Faint, style);
        let rows = self.columns.iter().map(|c| c.cells.len()).max().unwrap_or(0);
        for row in 0..rows {
            let cells = self.columns.iter().map(|c| match c.cells.get(row) {
                Some(cell) => c.place(cell, style, Place::Body),
                None => c.place(&Cell::default(), style, Place::Body),
            });
            out.push_str(cells.collect::<Vec<_>>().join(&" ".repeat(BETWEEN)).trim_end());
            out.push('\n');
        }
        out
    }

    fn width(&self) -> usize {
        let columns = self.columns.len();
        self.columns.iter().map(Column::width).sum::<usize>() + BETWEEN * columns.saturating_sub(1)
    }

    /// First and one past the last column of each named group.
    fn spans(&self) -> Vec<(usize, usize)> {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for (at, column) in self.columns.iter().enumerate().filter(|(_, c)| !c.group.is_empty()) {
            match spans.last_mut() {
                Some((first, end)) if *end == at && self.columns[*first].group == column.group => {
                    *end = at + 1;
                }
                _ => spans.push((at, at + 1)),
            }
        }
        spans
    }

    /// Widens the first column of each group whose name is longer than its columns.
    fn make_room_for_groups(&mut self) {
        self.columns.iter_mut().for_each(|column| column.least = 0);
        for (first, end) in self.spans() {
            let width = self.columns[first..end].iter().map(Column::width).sum::<usize>()
                + BETWEEN * (end - first - 1);
            let column = &mut self.columns[first];
            column.least += column.group.chars().count().saturating_sub(width);
        }
    }

    /// The upper line of the heading: each group's name over its columns, to the right over a single one.
    fn groups(&self) -> String {
        let mut line = String::new();
        for (first, end) in self.spans() {
            let before: usize = self.columns[..first].iter().map(|c| c.width() + BETWEEN).sum();
            let (column, name) = (&self.columns[first], &self.columns[first].group);
            let indent = match column.align {
                Align::Right if end - first == 1 => column.text_width().saturating_sub(name.chars().count()),
                Align::Right => {
                    let width = self.columns[first..end].iter().map(Column::width).sum::<usize>();
                    let room = (width + BETWEEN * (end - first - 1)).saturating_sub(name.chars().count());
                    room.min(column.text_width() - column.head.chars().count())
                }
                Align::Left => 0,
            };
            let blanks = (before + indent).saturating_sub(line.chars().count());
            line.push_str(&" ".repeat(blanks));
            line.push_str(name);
        }
        line
    }
}

/// Headings stand over the figures, and have no ink of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Head,
    Body,
}

impl Column {
    fn text_width(&self) -> usize {
        let cells = self.cells.iter().map(|c| c.text.chars().count());
        self.least + cells.chain([self.head.chars().count()]).max().unwrap_or(0)
    }

    fn aside_width(&self) -> usize {
        self.cells.iter().map(|c| c.aside.chars().count()).max().unwrap_or(0)
    }

    fn width(&self) -> usize {
        let aside = self.aside_width();
        self.text_width() + if aside > 0 { aside + 1 } else { 0 }
    }

    fn place(&self, cell: &Cell, style: Style, place: Place) -> String {
        let blanks = " ".repeat(self.text_width() - cell.text.chars().count());
        let text = if place == Place::Body { style.paint(cell.ink, &cell.text) } else { cell.text.clone() };
        let mut out = match self.align {
            Align::Left => text + &blanks,
            Align::Right => blanks + &text,
        };
        let aside = self.aside_width();
        if aside > 0 {
            let blanks = " ".repeat(aside - cell.aside.chars().count());
            let painted =
                if cell.aside.is_empty() { String::new() } else { style.paint(Ink::Faint, &cell.aside) };
            out = out + " " + &painted + &blanks;
        }
        out
    }
}

fn push_line(out: &mut String, line: &str, ink: Ink, style: Style) {
    out.push_str(&style.paint(ink, line.trim_end()));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: usize) -> String {
        let mut table = Table::default();
        table.column(("", "load"), Align::Left, 0, [Cell::new("c=1"), Cell::new("c=16")]);
        table.column(("TTFT ms", "p50"), Align::Right, 0, [Cell::new("9").aside("[8–10]"), Cell::new("123")]);
        table.column(("TTFT ms", "p99"), Align::Right, 1, [Cell::new("~20"), Cell::new("4,000")]);
        table.column(("", "nothing"), Align::Right, 1, [Cell::default(), Cell::default()]);
        table.text(Style { color: false, width })
    }

    #[test]
    fn columns_line_up() {
        let wanted = [
            "      TTFT ms",
            "load  p50           p99",
            "c=1     9 [8–10]    ~20",
            "c=16  123         4,000",
            "",
        ];
        assert_eq!(table(80), wanted.join("\n"));
    }

    #[test]
    fn a_group_that_lost_a_column_keeps_its_room() {
        let mut table = Table::default();
        table.column(("long name", "p50"), Align::Right, 0, [Cell::new("1")]);
        table.column(("long name", "p99"), Align::Right, 2, [Cell::new("1234567")]);
        table.column(("next", "p50"), Align::Right, 0, [Cell::new("2")]);
        let wanted = "long name  next\n      p50   p50\n        1     2\n";
        assert_eq!(table.text(Style { color: false, width: 16 }), wanted);
    }

    #[test]
    fn a_short_line_drops_what_it_may() {
        assert!(!table(18).contains("p99"));
        assert!(table(10).contains("p50"), "what may not be dropped stays");
    }
}
