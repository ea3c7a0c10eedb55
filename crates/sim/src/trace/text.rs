//! What the text formats share: exact decimals and dates.
