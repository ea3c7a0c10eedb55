//! `tidegate link top`: what a running link does, moment by moment.

use super::client::Client;
use super::text;
use crate::arguments::LinkTopArguments;
use crate::failure::Failure;
use crate::moments;

pub(crate) fn top(arguments: &LinkTopArguments) -> Result<(), Failure> {
    let client = Client::of(arguments.name.as_deref())?;
    let LinkTopArguments { every, times, json, .. } = *arguments;
    moments::show(every, times, json, || client.state(), |_, after| after.clone(), text::text)
}
