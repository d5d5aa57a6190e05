//! One page of a LIST, read item by item.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct PageMetadata {
    #[serde(rename = "continue")]
    pub(super) continue_token: Option<String>,
}

/// Reads a page item by item, so that memory holds only one item at a time as a JSON value.
struct PageSeed<'p, T, F> {
    pick: &'p mut F,
    picked: &'p mut Vec<T>,
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> DeserializeSeed<'de> for PageSeed<'_, T, F> {
    type Value = PageMetadata;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PageMetadata, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> Visitor<'de> for PageSeed<'_, T, F> {
    type Value = PageMetadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<PageMetadata, A::Error> {
        let Self { pick, picked } = self;
        let mut metadata = PageMetadata::default();
        let mut has_items = false;
        while let Some(field) = access.next_key::<Cow<'_, str>>()? {
            match &*field {
                "metadata" => metadata = access.next_value()?,
                "items" => {
                    has_items = true;
                    access.next_value_seed(ItemsSeed { pick, picked })?;
                }
                _ => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Without `items`, it is no list, but for example a `Status` that a proxy sends with code 200. Read as an empty
        // list, it would make all objects seem deleted.
        if has_items {
            Ok(metadata)
        } else {
            Err(A::Error::missing_field("items"))
        }
    }
}

/// Reads the items of a page. `null`, which Go writes for a nil slice, counts as no items.
struct ItemsSeed<'p, T, F> {
    pick: &'p mut F,
    picked: &'p mut Vec<T>,
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> DeserializeSeed<'de> for ItemsSeed<'_, T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> Visitor<'de> for ItemsSeed<'_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(item) = access.next_element::<Value>()? {
            self.picked.extend((self.pick)(&item));
        }
        Ok(())
    }
}

/// Reads one page, and adds to `picked` what `pick` returns for each item.
pub(super) fn parse_page<T>(
    body: &[u8],
    picked: &mut Vec<T>,
    mut pick: impl FnMut(&Value) -> Option<T>,
) -> serde_json::Result<PageMetadata> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let pick = &mut pick;
    let metadata = PageSeed { pick, picked }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(metadata)
}
