//! Common English words: short, and one token each in the vocabularies of today's models.

/// The words that synthetic prompts are made of.
pub(crate) const WORDS: &[&str] = &[
    "the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not",
    "he", "his", "but", "at", "are", "this", "have", "from", "or", "had", "an", "they", "which", "one",
    "you", "were", "her", "all", "she", "there", "would", "their", "we", "him", "been", "has", "when", "who",
    "will", "more", "no", "if", "out", "so", "said", "what", "up", "its", "about", "into", "than", "them",
    "can", "only", "other", "new", "some", "could", "time", "these", "two", "may", "then", "do", "first",
    "any", "my", "now", "such", "like", "our", "over", "man", "me", "even", "most", "made", "after", "also",
    "did", "many", "before", "must", "through", "years", "where", "much", "your", "way", "well", "down",
    "should", "because", "each", "just", "those", "people", "how", "too", "little", "state", "good", "very",
    "make", "world", "still", "own", "see", "men", "work", "long", "get", "here", "between", "both", "life",
    "being", "under", "never", "day", "same", "another", "know", "while", "last", "might", "us", "great",
    "old", "year", "off", "come", "since", "against", "go", "came", "right", "used", "take", "three",
    "water", "house", "music", "river", "stone", "light", "paper", "green", "table", "money", "letter",
    "night", "window", "garden", "number", "city", "story", "school", "morning", "market", "road", "engine",
    "forest", "winter",
];
