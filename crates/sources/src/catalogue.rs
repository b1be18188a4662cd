//! All engines that are known, and which of them a page is of.

use crate::Error;
use crate::engine::Engine;
use crate::page::Page;
use crate::reading::{self, Reading};

/// The engine files that the binary carries. Of several on a page the first leads.
const EMBEDDED: &[(&str, &str)] = &[
    ("vllm", include_str!("../../../engines/vllm/engine.toml")),
    ("ray-serve-llm", include_str!("../../../engines/ray-serve-llm/engine.toml")),
    ("sglang", include_str!("../../../engines/sglang/engine.toml")),
    ("tgi", include_str!("../../../engines/tgi/engine.toml")),
    ("tensorrt-llm", include_str!("../../../engines/tensorrt-llm/engine.toml")),
    ("llamacpp", include_str!("../../../engines/llamacpp/engine.toml")),
    ("lmdeploy", include_str!("../../../engines/lmdeploy/engine.toml")),
    ("dynamo", include_str!("../../../engines/dynamo/engine.toml")),
    ("litellm", include_str!("../../../engines/litellm/engine.toml")),
    ("envoy-ai-gateway", include_str!("../../../engines/envoy-ai-gateway/engine.toml")),
    ("triton", include_str!("../../../engines/triton/engine.toml")),
    ("dcgm-exporter", include_str!("../../../engines/dcgm-exporter/engine.toml")),
    ("nvidia-smi", include_str!("../../../engines/nvidia-smi/engine.toml")),
    ("amd", include_str!("../../../engines/amd/engine.toml")),
    ("ascend", include_str!("../../../engines/ascend/engine.toml")),
];

/// The engines that pages are looked up in.
#[derive(Debug, Clone)]
pub struct Catalogue {
    engines: Vec<Engine>,
}

impl Catalogue {
    /// The engines that the binary carries.
    pub fn builtin() -> Result<Self, Error> {
        let engines =
            EMBEDDED.iter().map(|(name, text)| Engine::parse(name, text)).collect::<Result<_, _>>()?;
        Ok(Self { engines })
    }

    /// Adds an engine, before all others; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, engine: Engine) -> Self {
        self.engines.retain(|known| known.name != engine.name);
        self.engines.insert(0, engine);
        self
    }

    /// The engines.
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The text of an engine file that the binary carries.
    pub fn source(name: &str) -> Option<&'static str> {
        EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Reads a page: the first engine that it is of, with the others as [`Reading::also`].
    pub fn read(&self, page: &Page) -> Reading {
        self.read_both(None, page, None)
    }

    /// Reads a page together with an earlier one of the same server, `seconds` apart where that is known.
    pub fn read_window(&self, before: &Page, after: &Page, seconds: Option<f64>) -> Reading {
        self.read_both(Some(before), after, seconds)
    }

    fn read_both(&self, before: Option<&Page>, page: &Page, seconds: Option<f64>) -> Reading {
        let growth = before.map(|before| crate::window::growth(before, page));
        let mut readings = self
            .engines
            .iter()
            .filter(|engine| engine.is_on(page))
            .map(|engine| reading::read(Some(engine), page, growth.as_ref(), seconds));
        let Some(mut first) = readings.next() else {
            return reading::read(None, page, growth.as_ref(), seconds);
        };
        first.also = readings.collect();
        first
    }
}
