//! Deadlines for best-effort packets beside real-time flows: `BE` sections 3 and 4.

mod equality;
mod excess;
mod fits;
mod flows;
mod limits;
mod link;
mod printed;
mod residual;
mod theorems;
mod tight;
