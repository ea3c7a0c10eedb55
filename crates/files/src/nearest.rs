//! The name that somebody most probably meant.

/// The one of `known` that is closest to `word`, if any is close enough to be
/// what was meant: at most one letter
/// in three wrong, and not all of them.
///
/// ```
/// use tidegate_files::nearest;
/// assert_eq!(nearest("durration", ["duration", "seeds"]), Some("duration"));
/// assert_eq!(nearest("colour", ["duration", "seeds"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| {
            let length = name.chars().count();
            *distance <= length.div_ceil(3) && *distance < length
        })
        .min()
        .map(|(_, name)| name)
}

/// What was expected in place of `word`: the nearest name, or all of them.
pub fn expectation<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(name) => format!("'{name}'"),
        None => {
            let all: Vec<_> = known.into_iter().collect();
            match all.as_slice() {
                [] => "none".into(),
                [only] => format!("'{only}'"),
                _ => format!("one of {}", all.join(", ")),
            }
        }
    }
}
