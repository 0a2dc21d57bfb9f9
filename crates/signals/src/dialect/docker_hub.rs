//! Docker Hub: parameters on both numbers (`100;w=21600`), no reset.
//!
//! Source: docker/docs, docker-hub/usage/pulls.md.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "docker-hub",
    ..Dialect::PLAIN
};
