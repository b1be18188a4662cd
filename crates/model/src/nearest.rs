//! The known name that a misspelt one is nearest to.

/// The nearest of the known names, and how many letters have to change (Levenshtein's distance).
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    known.into_iter().map(|known| (known, distance(known, name))).min_by_key(|(_, distance)| *distance)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_letters() {
        for (a, b, letters) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3), ("é", "e", 1)] {
            assert_eq!((distance(a, b), distance(b, a)), (letters, letters), "{a} {b}");
        }
        assert_eq!(nearest("sede", ["name", "seed", "slo"]), Some(("seed", 2)));
        assert_eq!(nearest("x", []), None);
    }
}
