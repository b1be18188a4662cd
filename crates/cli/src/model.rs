//! Which models a server has.

use anyhow::{Context, anyhow, bail};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde_json::Value;
use ttft_drive::get;
use ttft_model::{Endpoint, ErrorClass};
use ttft_plan::sibling_url;
use ttft_wire::{Target, WireError};

use crate::endpoint::Reached;
use crate::usage;

/// A list of models is never larger.
const LIMIT: usize = 4 << 20;

/// The headers of requests that are no load: those of the endpoint, with its key.
pub(crate) fn headers(reached: &Reached, endpoint: &Endpoint) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let own = endpoint.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    for (name, value) in reached.dialect.headers(reached.key.as_deref()).into_iter().chain(own) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers
}

/// What the server says of its models at `…/models`.
pub(crate) fn page(reached: &Reached, endpoint: &Endpoint) -> anyhow::Result<Value> {
    let model = endpoint.model.clone().unwrap_or_default();
    let url = sibling_url(&reached.url, &reached.dialect.path(&model), "models")?;
    let target = Target::parse(&url)?;
    let mut headers = headers(reached, endpoint);
    headers.remove(http::header::CONTENT_TYPE);
    let (status, body) = get(&target, &reached.connect, &endpoint.resolve, headers, LIMIT)?;
    match status {
        200 => {}
        401 | 403 => {
            let message = format!("the server answers {status} to {}", target.path);
            return Err(WireError { class: ErrorClass::HttpAuth, message }.into());
        }
        _ => bail!("it answers {status} to {}", target.path),
    }
    serde_json::from_slice(&body).context("what it lists is no JSON")
}

/// The models that the server lists.
pub(crate) fn list(reached: &Reached, endpoint: &Endpoint) -> anyhow::Result<Vec<String>> {
    let page = page(reached, endpoint)?;
    let ids = page["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    Ok(ids.map(str::to_owned).collect())
}

/// Sets the endpoint's model to the first that the server lists, if none is named.
pub(crate) fn choose(reached: &Reached, endpoint: &mut Endpoint) -> anyhow::Result<()> {
    if endpoint.model.is_some() {
        return Ok(());
    }
    let models = list(reached, endpoint).map_err(|error| match error.downcast_ref::<WireError>() {
        // Nothing will be had from there, with or without a model.
        Some(wire) if wire.class != ErrorClass::TimeoutTotal => anyhow!("{wire}; {}", wire.class.remedy()),
        _ => error.context("name a model with --model: the server's own list of models cannot be had"),
    })?;
    match models.into_iter().next() {
        Some(model) => endpoint.model = Some(model),
        None => return Err(usage(anyhow!("the server lists no model: name one with --model"))),
    }
    Ok(())
}
