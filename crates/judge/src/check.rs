//! What is odd about an endpoint, from one streamed request.
