//! What an instance says of itself, in Curator's JSON.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// How an instance stands in the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServiceType {
    /// An ephemeral znode.
    #[default]
    Dynamic,
    /// An ephemeral znode with a number at the end of its name. Only its name differs from its id.
    DynamicSequential,
    /// A persistent znode.
    Static,
    /// A persistent znode, as [`ServiceType::Static`].
    Permanent,
}

impl ServiceType {
    fn lower_case(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::DynamicSequential => "dynamic_sequential",
            Self::Static => "static",
            Self::Permanent => "permanent",
        }
    }
}

/// An instance of a service: Curator's `ServiceInstance`.
///
/// ```
/// use node_recipes::discovery::Instance;
///
/// let instance = Instance {
///     address: Some("10.20.30.40".into()),
///     port: Some(8080),
///     payload: "blue".into(),
///     ..Instance::new("orders", "6f2c")
/// };
/// assert_eq!(Instance::from_json(&instance.to_json()), Ok(instance));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// The service's name, which is that of the znode above.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// What tells this instance from others of the service.
    #[serde(default, deserialize_with = "null_is_default")]
    pub id: String,
    /// The name or address of its machine.
    #[serde(default)]
    pub address: Option<String>,
    /// Its port.
    #[serde(default)]
    pub port: Option<i32>,
    /// Its port with TLS.
    #[serde(default)]
    pub ssl_port: Option<i32>,
    /// What else the service wants to say. Curator reads strings, numbers, booleans and objects; an object of
    /// a Java class names that class in a field `@class`, and others are maps. It can't read an array.
    #[serde(default)]
    pub payload: Value,
    /// When it was registered, in milliseconds since 1970.
    #[serde(default, rename = "registrationTimeUTC", deserialize_with = "null_is_default")]
    pub registration_time_utc: i64,
    /// How it stands in the tree.
    #[serde(default, deserialize_with = "null_is_default")]
    pub service_type: ServiceType,
    /// How its address is made.
    #[serde(default)]
    pub uri_spec: Option<UriSpec>,
    /// False where it is there, and not to be chosen. It is written only then: older versions of Curator
    /// can't read data with this field. Curator 5.4 reads it, and writes it only where its serializer is
    /// told to (`new JsonInstanceSerializer<>(type, false)`).
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enabled: bool,
}

/// How an address is made: text, and names of fields that are put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UriSpec {
    /// Its parts, in their order.
    #[serde(default)]
    pub parts: Vec<Part>,
}

/// A part of a [`UriSpec`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Text, or the name of a field.
    #[serde(default)]
    pub value: String,
    /// True if it is the name of a field.
    #[serde(default)]
    pub variable: bool,
}

/// Why data is not that of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unreadable(pub String);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this is not the JSON of an instance: {}", self.0)
    }
}

impl std::error::Error for Unreadable {}

fn yes() -> bool {
    true
}

fn is_yes(enabled: &bool) -> bool {
    *enabled
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Instance {
    /// An instance that is enabled, and says no more of itself than this.
    #[must_use]
    pub fn new(name: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            id: id.into(),
            address: None,
            port: None,
            ssl_port: None,
            payload: Value::Null,
            registration_time_utc: 0,
            service_type: ServiceType::Dynamic,
            uri_spec: None,
            enabled: true,
        }
    }

    /// The data of its znode.
    #[must_use]
    pub fn to_json(&self) -> Bytes {
        // Only a map whose keys are no text, or a writer, could fail, and there is neither.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads a znode's data. As in Curator, fields that are not known are ignored, and none is required.
    ///
    /// # Errors
    /// [`Unreadable`] where it is no JSON object, or a field that is known has something else in it.
    pub fn from_json(data: &[u8]) -> Result<Self, Unreadable> {
        // An array of all fields in their order would do for serde, and not for Curator.
        if data.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(Unreadable("it is no object".into()));
        }
        serde_json::from_slice(data).map_err(|error| Unreadable(error.to_string()))
    }

    /// Its address by its [`UriSpec`], if it has one. A field that is not there, or not known, is left out.
    #[must_use]
    pub fn uri(&self) -> Option<String> {
        let parts = &self.uri_spec.as_ref()?.parts;
        let text = |part: &Part| if part.variable { self.field(&part.value) } else { part.value.clone() };
        Some(parts.iter().map(text).collect())
    }

    fn field(&self, name: &str) -> String {
        let port = |port: Option<i32>| port.map(|port| port.to_string()).unwrap_or_default();
        match name {
            "scheme" if self.ssl_port.is_some() => "https".into(),
            "scheme" => "http".into(),
            "name" => self.name.clone(),
            "id" => self.id.clone(),
            "address" => self.address.clone().unwrap_or_default(),
            "port" => port(self.port),
            "ssl-port" => port(self.ssl_port),
            "registration-time-utc" => self.registration_time_utc.to_string(),
            "service-type" => self.service_type.lower_case().into(),
            "[" => "{".into(),
            "]" => "}".into(),
            _ => String::new(),
        }
    }
}

impl UriSpec {
    /// Reads a text with names of fields in braces, such as `{scheme}://{address}:{port}/v1`. The fields are
    /// `scheme`, `name`, `id`, `address`, `port`, `ssl-port`, `registration-time-utc` and `service-type`, and
    /// `{[}` and `{]}` stand for braces. Nothing where a brace is missing, or stands within others.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, braced) = rest.split_at(at);
            let (name, after) = braced.strip_prefix('{')?.split_once('}')?;
            if name.contains('{') {
                return None;
            }
            parts.push(Part { value: literal.into(), variable: false });
            parts.push(Part { value: name.trim().into(), variable: true });
            rest = after;
        }
        parts.push(Part { value: rest.into(), variable: false });
        parts.retain(|part| part.variable || !part.value.is_empty());
        Some(Self { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Curator 5.4 wrote them.
    const DYNAMIC: &str = concat!(
        r#"{"name":"orders","id":"id-1","address":"10.20.30.40","port":8080,"sslPort":null,"#,
        r#""payload":"from test","registrationTimeUTC":1325129459728,"serviceType":"DYNAMIC","#,
        r#""uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},"#,
        r#"{"value":"address","variable":true},{"value":":","variable":false},"#,
        r#"{"value":"port","variable":true},{"value":"/v1","variable":false}]}}"#
    );
    const OBJECT: &str = concat!(
        r#"{"name":"orders","id":"id-3","address":"10.20.30.40","port":1,"sslPort":2,"#,
        r#""payload":{"@class":"java.util.HashMap","load":3,"zone":"a"},"registrationTimeUTC":0,"#,
        r#""serviceType":"PERMANENT","uriSpec":null}"#
    );
    const DISABLED: &str = concat!(
        r#"{"name":"orders","id":"id-2","address":null,"port":null,"sslPort":8443,"payload":null,"#,
        r#""registrationTimeUTC":1325129459728,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":null,"#,
        r#""enabled":false}"#
    );

    fn dynamic() -> Instance {
        Instance {
            address: Some("10.20.30.40".into()),
            port: Some(8080),
            payload: "from test".into(),
            registration_time_utc: 1_325_129_459_728,
            uri_spec: UriSpec::parse("{scheme}://{address}:{port}/v1"),
            ..Instance::new("orders", "id-1")
        }
    }

    #[test]
    fn what_curator_wrote_is_read_and_written_as_it_was() {
        for json in [DYNAMIC, OBJECT, DISABLED] {
            let instance = Instance::from_json(json.as_bytes()).unwrap();
            assert_eq!(instance.to_json(), json);
        }
        assert_eq!(Instance::from_json(DYNAMIC.as_bytes()).unwrap(), dynamic());
        let disabled = Instance::from_json(DISABLED.as_bytes()).unwrap();
        assert!(!disabled.enabled);
        assert_eq!((disabled.ssl_port, disabled.service_type), (Some(8443), ServiceType::DynamicSequential));
    }

    #[test]
    fn no_field_is_required_and_others_are_ignored() {
        assert_eq!(Instance::from_json(b"{}"), Ok(Instance::new("", "")));
        let json = br#" {"id":"a","weight":[{}],"serviceType":null,"name":null,"registrationTimeUTC":null}"#;
        assert_eq!(Instance::from_json(json), Ok(Instance::new("", "a")));
        let json = br#"{"uriSpec":{"parts":[{"value":"x","more":1}],"more":1}}"#;
        assert_eq!(Instance::from_json(json).unwrap().uri(), Some("x".into()));
    }

    #[test]
    fn what_is_no_instance_is_refused_with_a_reason() {
        let deep = format!("{{\"payload\":{}", "[".repeat(100_000));
        let wrong = ["", " ", "5", "null", "[]", "[\"a\"]", "{", "{\"port\":\"a\"}", "{\"port\":5000000000}"];
        let more = ["{\"serviceType\":\"NEW\"}", "{\"enabled\":1}", "{} {}", &deep];
        for json in wrong.into_iter().chain(more) {
            let refused = Instance::from_json(json.as_bytes()).unwrap_err();
            assert!(refused.to_string().starts_with("this is not the JSON of an instance: "), "{refused}");
        }
        assert!(Instance::from_json(b"{\"name\":\"\xff\"}").is_err());
    }

    #[test]
    fn an_address_is_made_of_the_fields() {
        let mut instance = dynamic();
        assert_eq!(instance.uri().unwrap(), "http://10.20.30.40:8080/v1");
        instance.ssl_port = Some(8443);
        let spec = "{scheme}://{ address }:{ssl-port}/{name}/{id}/{service-type}/{what}{[}{]}";
        instance.uri_spec = UriSpec::parse(spec);
        assert_eq!(instance.uri().unwrap(), "https://10.20.30.40:8443/orders/id-1/dynamic/{}");
        instance.uri_spec = None;
        assert_eq!(instance.uri(), None);
    }

    #[test]
    fn braces_that_do_not_match_are_no_spec() {
        for text in ["{", "}", "a{b", "a}b", "{a{b}}", "{a}}"] {
            assert_eq!(UriSpec::parse(text), None, "{text}");
        }
        assert_eq!(UriSpec::parse(""), Some(UriSpec::default()));
    }
}
