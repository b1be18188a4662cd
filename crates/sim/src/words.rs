//! The text of answers: made-up talk from a small vocabulary, the same for the same prompt.

use crate::random::mix;

/// Each word with its space in front, ready to stand in JSON.
const WORDS: [&str; 64] = [
    " time", " light", " the", " river", " of", " and", " stone", " under", " a", " quiet", " morning",
    " to", " walk", " in", " green", " valley", " where", " old", " trees", " keep", " their", " names",
    " for", " those", " who", " listen", " long", " enough", " wind", " carries", " small", " seeds",
    " over", " every", " wall", " until", " one", " finds", " ground", " that", " holds", " water", " after",
    " rain", " many", " roads", " begin", " here", " some", " end", " by", " sea", " others", " turn",
    " back", " toward", " hills", " with", " snow", " on", " them", " still", " bright", " again",
];

/// Words of characters that take two, three and four bytes.
const WIDE: [&str; 4] = [" für", " 東京", " naïve", " 🌊🌊"];

/// The token of that number, of an answer chosen by `seed`.
pub(crate) fn word(seed: u64, number: u32) -> &'static str {
    WORDS[(mix(seed ^ u64::from(number)) & 63) as usize]
}

/// The same, of characters that take several bytes.
pub(crate) fn wide_word(number: u32) -> &'static str {
    WIDE[(number & 3) as usize]
}
