//! The findings as pages: an index, and a page for each paper.

use tidegate_papers::{Claim, Effort, Finding, Outcome, Paper, Table};

/// The page that leads to the others.
pub(super) const INDEX: &str = "README.md";

/// The names of the files and their content.
pub(super) fn all(found: &[(&Claim, Finding)], effort: Effort) -> Vec<(String, String)> {
    let mut pages = vec![(INDEX.to_string(), index(found, effort))];
    let papers = found.chunk_by(|one, other| std::ptr::eq(one.0.paper, other.0.paper));
    pages.extend(papers.map(|found| {
        let paper = found[0].0.paper;
        (format!("{}.md", paper.key), page(paper, found, effort))
    }));
    pages
}

/// The option that asks for this effort.
fn option(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => " --quick",
        Effort::Usual => "",
        Effort::Full => " --full",
    }
}

fn index(found: &[(&Claim, Finding)], effort: Effort) -> String {
    let mut text = format!(
        "# What the papers claim, and what comes out here\n\n\
         Made by `tidegate reproduce{} --out FOLDER`, tidegate {}. Every verdict is computed from \
         the checks on the claim's page; each check compares runs with the same arrivals, over \
         {} seeds unless the page has more, and holds when its whole 95% interval is on the right \
         side of its bound.\n\n\
         | claim | what the paper says | verdict | checks that hold |\n\
         | --- | --- | --- | --- |\n",
        option(effort),
        env!("CARGO_PKG_VERSION"),
        effort.seeds(),
    );
    for (claim, finding) in found {
        let holding = finding.checks.iter().filter(|check| check.outcome == Outcome::Holds).count();
        let (id, key) = (claim.id, claim.paper.key);
        text.push_str(&format!(
            "| [{id}]({key}.md#{}) | {} | **{}** | {holding} of {} |\n",
            anchor(claim),
            claim.text,
            finding.verdict.words(),
            finding.checks.len(),
        ));
    }
    text
}

/// The anchor that a heading of the claim's id gets.
fn anchor(claim: &Claim) -> String {
    claim.id.to_lowercase()
}

fn page(paper: &Paper, found: &[(&Claim, Finding)], effort: Effort) -> String {
    let mut text = format!(
        "# {}: its claims, measured\n\n{}.\n\n{}\n\n[All papers]({INDEX})\n",
        paper.key, paper.reference, paper.setting
    );
    for (claim, finding) in found {
        text.push_str(&section(claim, finding, effort));
    }
    text
}

fn section(claim: &Claim, finding: &Finding, effort: Effort) -> String {
    let seeds = &finding.seeds;
    let mut text = format!(
        "\n## {}\n\n**{}.** {}: {}\n\n{}\n\n```sh\ntidegate reproduce {}{}\n```\n\n\
         Seeds {} to {}{}.\n\n| check | the paper | here | holds |\n| --- | --- | --- | --- |\n",
        claim.id,
        capitalised(finding.verdict.words()),
        claim.source,
        claim.text,
        claim.method,
        claim.id,
        option(effort),
        seeds.first().unwrap_or(&0),
        seeds.last().unwrap_or(&0),
        scenarios(finding),
    );
    for check in &finding.checks {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            check.statement,
            check.paper,
            check.ours,
            check.outcome.words()
        ));
    }
    if !claim.discussion.is_empty() {
        text.push_str(&format!("\n{}\n", claim.discussion));
    }
    for figure in &finding.figures {
        let (id, title) = (&figure.id, &figure.title);
        text.push_str(&format!("\n![{title}]({id}.svg)\n\n*{title}. {}*\n", figure.caption));
    }
    for table in &finding.tables {
        text.push_str(&tabular(table));
    }
    text
}

fn tabular(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> = (0..table.columns.len())
        .map(|place| if place == 0 { "---".into() } else { "---:".into() })
        .collect();
    let mut text = format!("\n**{}.** {}\n\n", table.title, table.caption);
    text.push_str(&line(&table.columns));
    text.push_str(&line(&rule));
    for row in &table.rows {
        let cells = std::iter::once(row.label.clone()).chain(row.ours.iter().cloned());
        text.push_str(&line(&cells.collect::<Vec<_>>()));
    }
    text
}

fn scenarios(finding: &Finding) -> String {
    // Gateways are set up in the program; they have no files.
    let link = |name: &&str| format!("[`scenarios/{name}`](../../scenarios/{name})");
    let links: Vec<_> = finding.scenarios.iter().map(link).collect();
    if links.is_empty() { String::new() } else { format!("; {}", links.join(", ")) }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.into_iter().chain(std::iter::once(characters.as_str().to_string())).collect()
}
