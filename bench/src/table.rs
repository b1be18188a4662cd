//! Plain columns that line up.

/// A table of text: the first column to the left, all others to the right.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with that heading.
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// Adds a line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The text, in the form of a Markdown table.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, &width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let aligned = if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                text.extend(["| ", &aligned, " "]);
            }
            text += "|\n";
            if number == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    text.extend(["|", &"-".repeat(width + 1), if column == 0 { "-" } else { ":" }]);
                }
                text += "|\n";
            }
        }
        text
    }
}

/// A figure that may be unknown, with that many decimals.
pub(crate) fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["name", "µs"]);
        table.row(["a".to_owned(), figure(Some(12.34), 1)]);
        table.row(["longer".to_owned(), figure(None, 1)]);
        assert_eq!(
            table.text(),
            "| name   |   µs |\n|--------|-----:|\n| a      | 12.3 |\n| longer |    – |\n"
        );
    }
}
