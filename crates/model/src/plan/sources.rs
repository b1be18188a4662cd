//! What is scraped beside the load.

use serde::{Deserialize, Serialize};

/// What is scraped beside the load, each second and at the edges of each stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sources {
    /// URLs of metrics pages of engines and gateways.
    pub server: Vec<String>,
    /// Those of accelerators; `nvidia-smi` is the program on this machine.
    pub gpu: Vec<String>,
    /// Look for a page at the endpoint's own host, where none is named in `server`.
    pub find: bool,
}

impl Default for Sources {
    fn default() -> Self {
        Self { server: Vec::new(), gpu: Vec::new(), find: true }
    }
}

/// The word for the program on this machine that tells of its GPUs.
pub const NVIDIA_SMI: &str = "nvidia-smi";
