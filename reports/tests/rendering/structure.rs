//! A reader of markup that is just strict enough to find an element that is not closed.

/// Elements that HTML never closes.
const VOID: [&str; 4] = ["meta", "!doctype", "link", "br"];

/// Panics, naming the place, unless every element is closed in order; returns the names of all elements.
pub(crate) fn elements(document: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = document;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('?') {
            continue;
        }
        let end = tag_end(rest);
        let (tag, after) = rest.split_at(end);
        rest = after;
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "closed in the wrong order near {:.80}", after);
            continue;
        }
        let name: String =
            tag.chars().take_while(|c| !c.is_whitespace() && *c != '/').collect::<String>().to_lowercase();
        seen.push(name.clone());
        if name == "script" || name == "style" {
            // What stands in them is no markup, up to their end.
            rest = &rest[rest.find("</").unwrap_or_else(|| panic!("{name} is never closed"))..];
        }
        if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    seen
}

/// Where the tag ends; a `>` within quotes does not end it.
fn tag_end(rest: &str) -> usize {
    let mut quoted = false;
    for (at, c) in rest.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return at,
            '<' => assert!(quoted, "a tag within a tag: {rest:.80}"),
            _ => {}
        }
    }
    panic!("a tag without end: {rest:.80}");
}

/// The values of an attribute over the whole document.
pub(crate) fn attribute<'a>(document: &'a str, name: &str) -> Vec<&'a str> {
    let lead = format!(" {name}=\"");
    document.split(lead.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Panics unless every link within a page leads to an element, and no two have one id.
pub(crate) fn links_lead_somewhere(page: &str, of: &str) {
    let ids = attribute(page, "id");
    for target in attribute(page, "href").into_iter().filter_map(|href| href.strip_prefix('#')) {
        assert!(ids.contains(&target), "{of}: nothing has the id {target}");
    }
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{of}: an id occurs twice");
}

/// What a terminal shows of a text, without its sequences for colours.
pub(crate) fn without_colour(coloured: &str) -> String {
    let mut bare = String::new();
    let mut rest = coloured;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').expect("every sequence ends").1;
    }
    bare + rest
}
