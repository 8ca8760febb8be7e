//! Which file of the store a request means.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing that is shown.
    Nothing,
    /// A folder that was asked for without the slash at its end: links in it would lead beside it.
    Moved(String),
    /// The store itself, which is no store of nights.
    Runs,
    /// A folder without a page of its own.
    Folder(PathBuf),
    /// A file.
    File(PathBuf),
}

/// Pages by which a folder shows itself.
const PAGES: [&str; 2] = ["report.html", "index.html"];

/// What is at a path below the store. Neither dots nor links lead out of it.
pub(super) fn of(store: &Path, path: &str) -> Place {
    let Some(below) = below(path) else { return Place::Nothing };
    let Ok(place) = store.join(&below).canonicalize() else { return Place::Nothing };
    if !place.starts_with(store) {
        return Place::Nothing;
    }
    if place.is_file() {
        return if path.ends_with('/') { Place::Nothing } else { Place::File(place) };
    }
    if !place.is_dir() {
        return Place::Nothing;
    }
    if !path.ends_with('/') {
        // From where it was asked for, so that no path is taken for another host's.
        let name = path.rsplit('/').next().unwrap_or_default();
        return Place::Moved(format!("./{name}/"));
    }
    let own = PAGES.map(|page| place.join(page)).into_iter().find(|page| page.is_file());
    match own.and_then(|page| page.canonicalize().ok()) {
        Some(page) if page.starts_with(store) => Place::File(page),
        _ if below.as_os_str().is_empty() => Place::Runs,
        _ => Place::Folder(place),
    }
}

/// The names of a path, one below the other. None where one of them is no plain name.
fn below(path: &str) -> Option<PathBuf> {
    let mut names = PathBuf::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let name = percent_decode_str(name).decode_utf8().ok()?;
        let is_plain = !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
        names.push(is_plain.then_some(name.as_ref())?);
    }
    Some(names)
}

/// What a browser is told that a file is. Whatever is no page of ours is text, or is kept.
pub(super) fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        Some("zst") => "application/zstd",
        Some("jsonl" | "xml" | "txt" | "md" | "log" | "toml") => "text/plain; charset=utf-8",
        None if path.file_name().is_some_and(|name| name == "log") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().canonicalize().expect("absolute").join("runs");
        std::fs::create_dir_all(store.join("a run/1/nodes")).expect("made");
        std::fs::write(store.join("a run/1/report.html"), "page").expect("written");
        std::fs::write(store.join("a run/1/.lock"), "lock").expect("written");
        std::fs::write(folder.path().join("secret"), "secret").expect("written");
        std::os::unix::fs::symlink("a run/1", store.join("latest")).expect("a link");
        std::os::unix::fs::symlink("../secret", store.join("out")).expect("a link");
        std::os::unix::fs::symlink(folder.path(), store.join("up")).expect("a link");
        (folder, store)
    }

    #[test]
    fn a_run_shows_its_page_and_a_folder_what_is_in_it() {
        let (_folder, store) = store();
        let at = |path: &str| of(&store, path);
        assert_eq!(at("/"), Place::Runs);
        assert_eq!(at("/a%20run/1/"), Place::File(store.join("a run/1/report.html")));
        assert_eq!(at("/latest/"), Place::File(store.join("a run/1/report.html")));
        assert_eq!(at("/a%20run/1"), Place::Moved("./1/".to_owned()));
        assert_eq!(at("/a%20run/1/nodes/"), Place::Folder(store.join("a run/1/nodes")));
        assert_eq!(at("/a%20run/1/report.html"), Place::File(store.join("a run/1/report.html")));
        std::fs::write(store.join("index.html"), "nights").expect("written");
        assert_eq!(at("/"), Place::File(store.join("index.html")));
    }

    #[test]
    fn nothing_outside_of_the_store_is_reached_and_nothing_hidden() {
        let (_folder, store) = store();
        for path in [
            "/../secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/out",
            "/up/secret",
            "/up/",
            "/a%20run/1/.lock",
            "/a%20run/1/report.html/",
            "/nowhere",
            "/a%20run/%00",
            "//../secret",
            "/%ff",
            "/..\\secret",
        ] {
            assert_eq!(of(&store, path), Place::Nothing, "{path}");
        }
    }
}
