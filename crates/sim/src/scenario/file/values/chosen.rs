//! Values that are chosen by name: nodes, controllers, profiles, codepoints and
//! disciplines.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use tidegate_core::setting::Kind;
use tidegate_core::{Dscp, registry};

use tidegate_files::Scalar;

use super::At;
use crate::tcp::PROFILES;
use crate::tcp::congestion::{self, CONTROLLERS};

/// A node or group, or several.
#[derive(Clone, Debug)]
pub(in crate::scenario::file) enum Names {
    One(String),
    Many(Vec<At<String>>),
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a node or group, or a list of names")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Names, E> {
                Ok(Names::One(name.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Names, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(list))
                    .map(Names::Many)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Names {
    fn schema_name() -> Cow<'static, str> {
        "Names".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A node or group, or a list of them.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ]
        })
    }
}

/// A congestion controller, by name; ordered by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenario::file) struct Congestion(
    pub(in crate::scenario::file) &'static congestion::Entry,
);

impl Congestion {
    const NAMES: [&str; CONTROLLERS.len()] = {
        let mut names = [""; CONTROLLERS.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = CONTROLLERS[at].name;
            at += 1;
        }
        names
    };
}

impl Ord for Congestion {
    fn cmp(&self, other: &Congestion) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl PartialOrd for Congestion {
    fn partial_cmp(&self, other: &Congestion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'de> Deserialize<'de> for Congestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Congestion, D::Error> {
        let name = String::deserialize(deserializer)?;
        congestion::Entry::named(&name)
            .map(Congestion)
            .ok_or_else(|| de::Error::unknown_variant(&name, &Congestion::NAMES))
    }
}

impl JsonSchema for Congestion {
    fn schema_name() -> Cow<'static, str> {
        "Congestion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let known = CONTROLLERS.iter().map(|entry| {
            let description = format!("{} ({}).", entry.summary, entry.source);
            json_schema!({ "description": description, "type": "string", "const": entry.name })
        });
        json_schema!({
            "description": "What sets the congestion window.",
            "oneOf": known.collect::<Vec<_>>(),
        })
    }
}

/// A named set of TCP settings.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario::file) struct Profile(pub(in crate::scenario::file) &'static str);

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Profile, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = PROFILES.iter().find(|(known, _)| *known == name);
        known.map(|(name, _)| Profile(name)).ok_or_else(|| {
            let known: Vec<_> = PROFILES.iter().map(|(name, _)| format!("`{name}`")).collect();
            let known = known.join(", ");
            de::Error::custom(format!("unknown variant `{name}`, expected one of {known}"))
        })
    }
}

impl JsonSchema for Profile {
    fn schema_name() -> Cow<'static, str> {
        "Profile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let known = PROFILES.iter().map(|(name, meaning)| {
            json_schema!({ "description": meaning, "type": "string", "const": name })
        });
        json_schema!({
            "description": "A named set of TCP settings.",
            "oneOf": known.collect::<Vec<_>>(),
        })
    }
}

/// A differentiated services codepoint, by name or number.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scenario::file) struct CodePoint(pub(in crate::scenario::file) Dscp);

impl<'de> Deserialize<'de> for CodePoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CodePoint, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = CodePoint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a codepoint: CS0 to CS7, AF11 to AF43, EF, VA, LE, or a number from 0 to 63",
                )
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<CodePoint, E> {
                Dscp::named(name)
                    .map(CodePoint)
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<CodePoint, E> {
                u8::try_from(number)
                    .ok()
                    .and_then(Dscp::new)
                    .map(CodePoint)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for CodePoint {
    fn schema_name() -> Cow<'static, str> {
        "CodePoint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A differentiated services codepoint, by name or number.",
            "anyOf": [
                { "type": "string", "pattern": "^(CS[0-7]|AF[1-4][1-3]|EF|VA|LE)$" },
                { "type": "integer", "minimum": 0, "maximum": 63 },
            ]
        })
    }
}

/// A discipline, by name alone or with settings.
#[derive(Clone, Debug)]
pub(in crate::scenario::file) struct Named {
    /// `None` in a table that lacks it.
    pub(in crate::scenario::file) name: Option<At<String>>,
    pub(in crate::scenario::file) label: Option<At<String>>,
    /// Parameter, place of its name, value as text.
    pub(in crate::scenario::file) settings: Vec<(At<String>, At<Scalar>)>,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a discipline, or a table with its name and parameters")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Named, E> {
                // The place is that of the whole value, which the caller has.
                let name = At { value: name.into(), place: 0..0 };
                Ok(Named { name: Some(name), label: None, settings: Vec::new() })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut named = Named { name: None, label: None, settings: Vec::new() };
                while let Some(key) = map.next_key::<At<String>>()? {
                    match key.as_str() {
                        "name" => named.name = Some(map.next_value()?),
                        "label" => named.label = Some(map.next_value()?),
                        _ => named.settings.push((key, map.next_value()?)),
                    }
                }
                Ok(named)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Named {
    fn schema_name() -> Cow<'static, str> {
        "Discipline".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = registry::DISCIPLINES.iter().map(|entry| entry.name).collect();
        let tables = registry::DISCIPLINES.iter().map(|entry| {
            let mut properties = serde_json::Map::new();
            properties.insert("name".into(), serde_json::json!({ "const": entry.name }));
            properties.insert("label".into(), serde_json::json!({ "type": "string" }));
            for parameter in entry.parameters {
                let description = format!("{}: {}", parameter.help, parameter.kind.expected());
                let values = match parameter.kind {
                    Kind::Switch => ("enum", serde_json::json!(["on", "off", true, false])),
                    _ => ("type", serde_json::json!(["string", "number"])),
                };
                let value = serde_json::json!({
                    (values.0): values.1,
                    "description": description,
                    "default": parameter.default,
                });
                properties.insert(parameter.name.into(), value);
            }
            serde_json::json!({
                "type": "object",
                "description": entry.summary,
                "properties": properties,
                "required": ["name"],
                "additionalProperties": false,
            })
        });
        let mut forms = vec![serde_json::json!({ "enum": names })];
        forms.extend(tables);
        json_schema!({ "description": "A discipline, by name alone or with settings.", "anyOf": forms })
    }
}
