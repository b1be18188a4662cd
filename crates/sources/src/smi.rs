//! The table of `nvidia-smi --query-gpu=… --format=csv`, as series.

use crate::page::{Format, Labels, Page};

/// Columns that say which GPU a row is of, and are no values.
const NAMES: [&str; 6] = ["index", "name", "uuid", "gpu_uuid", "pci.bus_id", "gpu_name"];

/// The page of such a table; none if the text is something else. `utilization.gpu [%]` becomes
/// `nvidia_smi:utilization_gpu`.
pub(crate) fn page(text: &str) -> Option<Page> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let head: Vec<&str> = lines.next()?.split(',').map(str::trim).collect();
    let is_query = |column: &&str| {
        ["utilization.", "memory.", "power.", "temperature."].iter().any(|p| column.starts_with(p))
    };
    if !head.iter().any(is_query) || head.iter().any(|column| column.contains('{')) {
        return None;
    }
    let columns: Vec<&str> =
        head.iter().map(|column| column.split(" [").next().unwrap_or(column).trim()).collect();
    let mut page = Page::new(Format::NvidiaSmi);
    for (row, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != columns.len() {
            page.marks.push(format!("row {} has {} cells, not {}", row + 1, cells.len(), columns.len()));
            continue;
        }
        let mut labels: Labels = columns
            .iter()
            .zip(&cells)
            .filter(|(column, _)| NAMES.contains(column))
            .map(|(column, cell)| ((*column).to_owned(), (*cell).to_owned()))
            .collect();
        labels.push(("row".to_owned(), row.to_string()));
        labels.sort();
        for (column, cell) in columns.iter().zip(&cells).filter(|(column, _)| !NAMES.contains(column)) {
            // `45 %`, `1234 MiB`, `[N/A]`, `[Not Supported]`.
            let value = cell.split(' ').next().and_then(|word| word.parse::<f64>().ok());
            if let Some(value) = value.filter(|value| value.is_finite()) {
                page.push(format!("nvidia_smi:{}", column.replace('.', "_")), labels.clone(), value);
            }
        }
    }
    page.settle();
    Some(page)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the arithmetic of these numbers is exact")]
mod tests {
    use super::*;

    #[test]
    fn a_table() {
        let text = "index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]\n\
                    0, NVIDIA A10, 45 %, 1234 MiB, 71.20 W\n1, NVIDIA A10, [N/A], 5, [Not Supported]\n1, short\n";
        let page = page(text).unwrap();
        assert_eq!(page.series("nvidia_smi:utilization_gpu").len(), 1);
        assert_eq!(page.series("nvidia_smi:memory_used")[1].value, 5.0);
        assert_eq!(page.series("nvidia_smi:power_draw")[0].label("name"), "NVIDIA A10");
        assert_eq!(page.marks.len(), 1);
        assert!(super::page("x 1\n").is_none());
    }
}
