//! Label selectors, as the API server reads them (apimachinery, `labels.Parse`).

use std::collections::BTreeMap;

use serde_json::Value;

/// The requirements of a label selector; all of them have to be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

/// One requirement of a label selector, such as `tier in (a, b)`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads a selector, such as `app=web,tier in (a, b),!legacy`.
    ///
    /// # Errors
    ///
    /// The reason why the text is not a selector, with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let error = |reason: &str| format!("{text:?} is not a label selector: {reason}");
        let mut tokens = Tokens { rest: text };
        let mut requirements = Vec::new();
        if tokens.peek().is_empty() {
            return Ok(Self::default());
        }
        loop {
            requirements.push(parse_requirement(&mut tokens).map_err(error)?);
            match tokens.next() {
                "" => return Ok(Self(requirements)),
                "," => {}
                _ => return Err(error("a comma is missing between two requirements")),
            }
        }
    }

    /// Returns whether the selector has no requirement, so that it matches any object.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the labels or annotations of an object, in JSON, meet all requirements.
    pub fn matches_json(&self, labels: Option<&Value>) -> bool {
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let texts = labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        self.matches(&texts.collect())
    }

    /// Returns whether these labels meet all requirements.
    fn matches(&self, labels: &BTreeMap<&str, &str>) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(requirement.key.as_str()).copied();
            let number = || value?.parse::<i64>().ok();
            match &requirement.test {
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
                Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
                Test::Above(limit) => number().is_some_and(|number| number > *limit),
                Test::Below(limit) => number().is_some_and(|number| number < *limit),
            }
        })
    }
}

fn parse_requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, &'static str> {
    let mut key = tokens.next();
    let is_negated = key == "!";
    if is_negated {
        key = tokens.next();
    }
    if !is_word(key) {
        return Err("a label key is missing");
    }
    let test = match (is_negated, tokens.peek()) {
        (true, _) => Test::Absent,
        (false, "" | ",") => Test::Exists,
        (false, operator) => {
            tokens.next();
            match operator {
                "=" | "==" => Test::In(vec![parse_value(tokens)?]),
                "!=" => Test::NotIn(vec![parse_value(tokens)?]),
                "in" => Test::In(parse_values(tokens)?),
                "notin" => Test::NotIn(parse_values(tokens)?),
                ">" => Test::Above(parse_value(tokens)?.parse().map_err(|_| "> takes a number")?),
                "<" => Test::Below(parse_value(tokens)?.parse().map_err(|_| "< takes a number")?),
                _ => return Err("an operator is missing: =, !=, in, notin, > or <"),
            }
        }
    };
    Ok(Requirement {
        key: key.to_owned(),
        test,
    })
}

/// Reads a value, which may be empty.
fn parse_value(tokens: &mut Tokens<'_>) -> Result<String, &'static str> {
    if matches!(tokens.peek(), "" | "," | ")") {
        return Ok(String::new());
    }
    let value = tokens.next();
    if is_word(value) {
        Ok(value.to_owned())
    } else {
        Err("a value is missing")
    }
}

/// Reads a list of values, such as `(a, b)`.
fn parse_values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, &'static str> {
    if tokens.next() != "(" {
        return Err("the values after in and notin need parentheses");
    }
    let mut values = vec![parse_value(tokens)?];
    loop {
        match tokens.next() {
            "," => values.push(parse_value(tokens)?),
            ")" => return Ok(values),
            _ => return Err("a closing parenthesis is missing"),
        }
    }
}

/// Returns whether a token is a key or a value. One that no label may have matches no object.
fn is_word(token: &str) -> bool {
    !token.is_empty() && !token.starts_with(is_sign)
}

fn is_sign(character: char) -> bool {
    "(),<>!=".contains(character)
}

/// The tokens of a selector: words and operators. After the last one, a token is empty.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn peek(&self) -> &'t str {
        let text = self.rest.trim_start();
        let Some(first) = text.chars().next() else {
            return "";
        };
        let length = match first {
            '!' | '=' if text[1..].starts_with('=') => 2,
            '(' | ')' | ',' | '<' | '>' | '!' | '=' => 1,
            _ => text
                .find(|character: char| character.is_whitespace() || is_sign(character))
                .unwrap_or(text.len()),
        };
        &text[..length]
    }

    fn next(&mut self) -> &'t str {
        let token = self.peek();
        self.rest = &self.rest.trim_start()[token.len()..];
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_as_those_of_the_server() {
        let labels = BTreeMap::from([("app", "web"), ("tier", "a"), ("n", "5"), ("x.io/y", "")]);
        for (text, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("!gone", true),
            ("app=web", true),
            ("app==web,tier = a", true),
            ("app!=web", false),
            ("gone!=web", true),
            ("tier in (a, b)", true),
            ("tier in (b)", false),
            ("tier notin (b,c)", true),
            ("gone notin (b)", true),
            ("gone in ()", false),
            ("x.io/y=", true),
            ("x.io/y,app=web", true),
            ("n>4,n<6", true),
            ("n>5", false),
            ("app>1", false),
        ] {
            let selector = LabelSelector::parse(text).expect(text);
            assert_eq!(selector.matches(&labels), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_selector_is_refused() {
        for text in [
            "=a",
            "app web",
            "app in a",
            "app in (a",
            "a,,b",
            "app=a b",
            "n>x",
            "!",
            ",",
        ] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
