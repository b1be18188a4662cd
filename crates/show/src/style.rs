//! How text may look: colour or not, and how wide.

use anstyle::{AnsiColor, Color, Effects};

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colours may be used.
    pub color: bool,
    /// Characters that a line may hold.
    pub width: usize,
}

/// What a piece of text is, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    /// Nothing special.
    #[default]
    Plain,
    /// A heading, or the figure that matters most.
    Strong,
    /// Beside the point.
    Faint,
    /// As it should be.
    Good,
    /// Worth a second look.
    Doubtful,
    /// Wrong.
    Bad,
}

impl Style {
    /// The text in that ink.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        let style = anstyle::Style::new();
        let colour = |colour: AnsiColor| style.fg_color(Some(Color::Ansi(colour)));
        let style = match ink {
            _ if !self.color => return text.to_owned(),
            Ink::Plain => return text.to_owned(),
            Ink::Strong => style.effects(Effects::BOLD),
            Ink::Faint => style.effects(Effects::DIMMED),
            Ink::Good => colour(AnsiColor::Green),
            Ink::Doubtful => colour(AnsiColor::Yellow),
            Ink::Bad => colour(AnsiColor::Red).effects(Effects::BOLD),
        };
        format!("{style}{text}{style:#}")
    }
}

/// Breaks text between words into lines of at most `width` characters: the first begins with `first`, the others
/// with as many blanks. A word that is longer than a line stays whole.
pub fn wrap(first: &str, text: &str, width: usize) -> String {
    let indent = first.chars().count();
    let mut out = first.to_owned();
    let mut column = indent;
    // A number is not parted from its per cent sign.
    let glued = text.replace(" %", "\u{1}%");
    for (i, word) in glued.split_whitespace().enumerate() {
        let length = word.chars().count();
        if i > 0 && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word.replace('\u{1}', " "));
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("- ", "one two three", 9), "- one two\n  three\n");
        assert_eq!(wrap("", "unbreakable word", 4), "unbreakable\nword\n");
    }

    #[test]
    fn no_colour_no_codes() {
        let plain = Style { color: false, width: 80 };
        assert_eq!(plain.paint(Ink::Bad, "x"), "x");
        let coloured = Style { color: true, ..plain };
        assert_eq!(coloured.paint(Ink::Strong, "x"), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(coloured.paint(Ink::Plain, "x"), "x");
    }
}
