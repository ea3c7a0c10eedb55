//! Deadlines for best-effort packets beside real-time flows: `BE` sections 3 and 4.

mod equality;
mod flows;
mod residual;
