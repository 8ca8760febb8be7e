//! Files of Java's authentication service, as far as servers of ZooKeeper use them:
//!
//! ```text
//! Server {
//!     org.apache.zookeeper.server.auth.DigestLoginModule required
//!     user_ann="her password"
//!     user_bob="his";
//! };
//! ```
//!
//! Sections of modules, a module being a class, a flag and options until a semicolon. Comments are Java's.
//! Values stand in quotes, with `\"` and `\\` inside, or bare. References to system properties (`${...}`) are
//! refused: there are none here, and a password that silently was another would lock people out.

use std::collections::BTreeMap;

/// What is wrong with a file, and in which line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct JaasError {
    line: usize,
    reason: &'static str,
}

/// One module of a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) class: String,
    pub(super) options: Vec<(String, String)>,
}

/// The names of a file's sections.
///
/// # Errors
/// Where and why the text is no such file.
pub fn sections(text: &str) -> Result<Vec<String>, JaasError> {
    Ok(parse(text)?.into_keys().collect())
}

const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];

/// Every section by its name.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Vec<Module>>, JaasError> {
    let mut tokens = Tokens { rest: text, line: 1 };
    let mut sections = BTreeMap::new();
    while let Some(token) = tokens.next()? {
        let Token::Word(name) = token else { return Err(tokens.wrong("the name of a section is wanted")) };
        tokens.expect('{', "`{` is wanted behind the name of a section")?;
        let mut modules = Vec::new();
        loop {
            match tokens.next()? {
                Some(Token::Sign('}')) => break,
                Some(Token::Word(class)) => modules.push(module(&mut tokens, class)?),
                _ => return Err(tokens.wrong("a class or `}` is wanted")),
            }
        }
        tokens.expect(';', "`;` is wanted behind `}`")?;
        if sections.insert(name, modules).is_some() {
            return Err(tokens.wrong("a second section of this name"));
        }
    }
    Ok(sections)
}

fn module(tokens: &mut Tokens<'_>, class: String) -> Result<Module, JaasError> {
    match tokens.next()? {
        Some(Token::Word(flag)) if FLAGS.contains(&flag.to_ascii_lowercase().as_str()) => {}
        _ => {
            return Err(
                tokens.wrong("required, requisite, sufficient or optional is wanted behind the class")
            );
        }
    }
    let mut options = Vec::new();
    loop {
        match tokens.next()? {
            Some(Token::Sign(';')) => return Ok(Module { class, options }),
            Some(Token::Word(key)) => {
                tokens.expect('=', "`=` is wanted behind the name of an option")?;
                match tokens.next()? {
                    Some(Token::Word(value) | Token::Text(value)) => options.push((key, value)),
                    _ => return Err(tokens.wrong("a value is wanted behind `=`")),
                }
            }
            _ => return Err(tokens.wrong("an option or `;` is wanted")),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// In quotes.
    Text(String),
    Sign(char),
}

struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl Tokens<'_> {
    fn wrong(&self, reason: &'static str) -> JaasError {
        JaasError { line: self.line, reason }
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }

    fn expect(&mut self, sign: char, reason: &'static str) -> Result<(), JaasError> {
        match self.next()? {
            Some(Token::Sign(found)) if found == sign => Ok(()),
            _ => Err(self.wrong(reason)),
        }
    }

    fn skip(&mut self) -> Result<(), JaasError> {
        loop {
            self.advance(self.rest.len() - self.rest.trim_start().len());
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").ok_or_else(|| self.wrong("a comment that does not end"))?;
                self.advance(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Option<Token>, JaasError> {
        self.skip()?;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let token = match first {
            '{' | '}' | ';' | '=' => {
                self.advance(1);
                Token::Sign(first)
            }
            '"' => Token::Text(self.quoted()?),
            _ => {
                let is_end = |char: char| char.is_whitespace() || "{};=\"".contains(char);
                let end = self.rest.find(is_end).unwrap_or(self.rest.len());
                let word = self.rest.get(..end).unwrap_or_default().to_owned();
                self.advance(end);
                Token::Word(word)
            }
        };
        if let Token::Word(text) | Token::Text(text) = &token
            && text.contains("${")
        {
            return Err(self.wrong("a reference to a system property: write its value here"));
        }
        Ok(Some(token))
    }

    fn quoted(&mut self) -> Result<String, JaasError> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.advance(at + 1);
                    return Ok(text);
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                _ => text.push(char),
            }
        }
        Err(self.wrong("a text in quotes that does not end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_modules_and_options_are_found_between_comments() {
        let text = "/* users\n of ours */\nServer {\n  a.b.DigestLoginModule required // the only one\n  \
                    user_ann=\"say \\\"friend\\\"\"\n  user_bob=plain;\n  c.Other optional;\n};\nClient {};";
        let sections = parse(text).expect("sound");
        assert_eq!(sections.keys().collect::<Vec<_>>(), ["Client", "Server"]);
        let options = vec![
            ("user_ann".to_owned(), "say \"friend\"".to_owned()),
            ("user_bob".to_owned(), "plain".to_owned()),
        ];
        assert_eq!(
            sections["Server"],
            [
                Module { class: "a.b.DigestLoginModule".to_owned(), options },
                Module { class: "c.Other".to_owned(), options: Vec::new() }
            ]
        );
        assert_eq!(parse(" \n"), Ok(BTreeMap::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, message) in [
            ("Server", "line 1: `{` is wanted"),
            ("Server {\n a.B;\n};", "line 2: required, requisite"),
            ("Server {\n a.B required\n user_x;\n};", "line 3: `=` is wanted"),
            ("Server {\n a.B required user_x=\"y\n\";};", "line 2: a text in quotes"),
            ("Server {\n a.B required user_x=\"${pw}\";};", "line 2: a reference"),
            ("Server { a.B required; }", "line 1: `;` is wanted behind `}`"),
            ("/* never", "line 1: a comment that does not end"),
            ("A {};\nA {};", "line 2: a second section"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
