//! Calls that adapt: what a receiver asks for beside another program, and how a call behaves
//! behind links that change.

mod behind_links;
mod beside_aiortc;
