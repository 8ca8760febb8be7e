//! Which names a node can have.

use thiserror::Error;

/// Why a path names no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// It has no characters at all.
    #[error("use an empty path")]
    Empty,
    /// It does not begin with `/`.
    #[error("use a path that does not start with /")]
    NotAbsolute,
    /// It ends with `/` and is not the root.
    #[error("use a path that ends with /")]
    TrailingSlash,
    /// It has two slashes in a row.
    #[error("use a path with an empty name in it")]
    EmptyName,
    /// It has a name that is `.` or `..`.
    #[error("use a path with . or .. as a name in it")]
    Relative,
    /// It has a character that ZooKeeper does not allow.
    #[error("use a path with the character {0:?} in it")]
    Character(char),
}

/// Checks a path as ZooKeeper does.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn validate_path(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    let Some(names) = path.strip_prefix('/') else { return Err(PathError::NotAbsolute) };
    if names.is_empty() {
        return Ok(());
    }
    if names.ends_with('/') {
        return Err(PathError::TrailingSlash);
    }
    names.split('/').try_for_each(validate_name)
}

/// Checks the path of a sequential create, to whose end the server adds a number: it may end with `/`.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn validate_sequential_path(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    let Some((parent, name)) = path.rsplit_once('/') else { return Err(PathError::NotAbsolute) };
    // The number that follows makes any last name, "." and ".." included, a name of its own.
    validate_path(if parent.is_empty() { "/" } else { parent })?;
    name.chars().find(|&c| is_forbidden(c)).map_or(Ok(()), |c| Err(PathError::Character(c)))
}

fn validate_name(name: &str) -> Result<(), PathError> {
    match name {
        "" => Err(PathError::EmptyName),
        "." | ".." => Err(PathError::Relative),
        // The shortest way through the common case.
        _ if name.bytes().all(|byte| (0x20..0x7f).contains(&byte)) => Ok(()),
        _ => name.chars().find(|&c| is_forbidden(c)).map_or(Ok(()), |c| Err(PathError::Character(c))),
    }
}

/// Control characters, private use, specials, and everything that Java needs surrogates for.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_paths_are_accepted() {
        for path in ["/", "/a", "/a/b", "/a b/.../..a", "/\u{e4}\u{20ac}", "/a.", "/.a/b..c"] {
            assert_eq!(validate_path(path), Ok(()), "{path}");
            assert_eq!(validate_sequential_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn bad_paths_are_refused_for_their_reason() {
        for (path, error) in [
            ("", PathError::Empty),
            ("a", PathError::NotAbsolute),
            ("/a/", PathError::TrailingSlash),
            ("//", PathError::TrailingSlash),
            ("/a//b", PathError::EmptyName),
            ("/./b", PathError::Relative),
            ("/a/..", PathError::Relative),
            ("/a\0", PathError::Character('\0')),
            ("/\u{7f}", PathError::Character('\u{7f}')),
            ("/\u{e000}", PathError::Character('\u{e000}')),
            ("/\u{fffd}", PathError::Character('\u{fffd}')),
            ("/\u{1f600}", PathError::Character('\u{1f600}')),
        ] {
            assert_eq!(validate_path(path), Err(error), "{path:?}");
        }
    }

    #[test]
    fn a_sequential_path_may_end_with_a_slash() {
        for path in ["/", "/a/", "/a/.", "/a/.."] {
            assert_eq!(validate_sequential_path(path), Ok(()), "{path}");
        }
        for (path, error) in [
            ("", PathError::Empty),
            ("a", PathError::NotAbsolute),
            ("a/b", PathError::NotAbsolute),
            ("/a//", PathError::TrailingSlash),
            ("/../b", PathError::Relative),
            ("/a/\u{1}", PathError::Character('\u{1}')),
        ] {
            assert_eq!(validate_sequential_path(path), Err(error), "{path:?}");
        }
    }
}
