//! JSON Schemas of files, for editors.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The JSON Schema of the files that a type is read from.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> String {
    // TOML has no null: what may be absent is absent.
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

/// Takes out the null that an `Option` allows in JSON.
fn without_null(schema: &mut Schema) {
    let null = serde_json::json!({ "type": "null" });
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        forms.retain(|form| *form != null);
        if let [Value::Object(only)] = forms.as_mut_slice() {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            // The key's own description says more than that of its type.
            let described = schema.get("description").is_some();
            for (key, value) in only {
                if !(described && key == "description") {
                    schema.insert(key, value);
                }
            }
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
}
