//! The cases of replacements, stop orders and auctions.

use super::*;

pub(super) fn changing() -> Vec<DocumentedCase> {
    let level = [limit(1, Sell, 10, 5), limit(2, Sell, 10, 5)];
    let after = |command: Command| CaseInput(vec![command], Command::New(limit(9, Buy, 10, 1)));
    let first = |maker, leaves| [accepted(9), trade(0, (maker, 9, Buy), 10, 1, (leaves, 0))];
    vec![
        case("replace: less keeps the place", CME_REPLACE, &level, after(replace(1, 10, 3)), &first(1, 2)),
        case("replace: more loses the place", CME_REPLACE, &level, after(replace(1, 10, 6)), &first(2, 4)),
        case(
            "replace: there and back loses the place",
            CME_REPLACE,
            &level,
            CaseInput(vec![replace(1, 11, 5), replace(1, 10, 5)], Command::New(limit(9, Buy, 10, 1))),
            &first(2, 4),
        ),
        case(
            "replace: a price that crosses trades",
            CME_REPLACE,
            &[level[0], limit(3, Buy, 9, 2)],
            replace(3, 10, 2),
            &[Replaced { id: 3, side: Buy, price: 0, leaves: 2 }, trade(0, (1, 3, Buy), 10, 2, (3, 0))],
        ),
        case(
            "good till time: gone at its time",
            CME_QUALIFIERS,
            &[NewOrder { expires_at: 5, ..lasting(GoodTillTime, limit(1, Buy, 9, 2)) }],
            CaseInput(vec![Command::Time(4)], Command::Time(5)),
            &[Event::Expired { id: 1, side: Buy, price: 0, leaves: 2 }],
        ),
    ]
}

pub(super) fn stops() -> Vec<DocumentedCase> {
    let offers = [limit(1, Sell, 10, 1), limit(2, Sell, 11, 1), limit(3, Sell, 12, 9)];
    let with = |stops: &[NewOrder]| [&offers[..], stops].concat();
    let takes = |id, quantity| limit(id, Buy, 11, quantity);
    vec![
        case(
            "stop: a trade at its price makes it a market order",
            CME_STOP,
            &with(&[stop(10, limit(5, Buy, 0, 2))]),
            limit(9, Buy, 10, 1),
            &[
                accepted(9),
                trade(0, (1, 9, Buy), 10, 1, (0, 0)),
                Triggered { id: 5 },
                trade(1, (2, 5, Buy), 11, 1, (0, 1)),
                trade(2, (3, 5, Buy), 12, 1, (8, 0)),
            ],
        ),
        case(
            "stop-limit: what is left is a limit order",
            CME_STOP,
            &with(&[stop(10, limit(5, Buy, 11, 4))]),
            CaseInput(vec![Command::New(limit(9, Buy, 10, 1))], Command::Cancel { id: 5, owner: 5 }),
            &[cancelled(5, 3, CancelReason::Requested)],
        ),
        case(
            "stop: by stop price, then by time",
            MILLENNIUM,
            &with(&[
                stop(11, limit(5, Buy, 0, 1)),
                stop(10, limit(6, Buy, 0, 1)),
                stop(10, limit(7, Buy, 0, 1)),
            ]),
            takes(9, 2),
            &[
                accepted(9),
                trade(0, (1, 9, Buy), 10, 1, (0, 1)),
                trade(1, (2, 9, Buy), 11, 1, (0, 0)),
                Triggered { id: 6 },
                trade(2, (3, 6, Buy), 12, 1, (8, 0)),
                Triggered { id: 7 },
                trade(3, (3, 7, Buy), 12, 1, (7, 0)),
                Triggered { id: 5 },
                trade(4, (3, 5, Buy), 12, 1, (6, 0)),
            ],
        ),
        case(
            "stop: in an auction it waits for the opening price",
            MILLENNIUM,
            &[],
            gathered(&[
                stop(10, limit(5, Buy, 0, 2)),
                limit(1, Sell, 10, 1),
                limit(2, Buy, 10, 1),
                limit(3, Sell, 13, 4),
            ]),
            &[
                Uncrossed { instrument: 0, price: 10, volume: 1 },
                trade(0, (1, 2, Buy), 10, 1, (0, 0)),
                Triggered { id: 5 },
                trade(1, (3, 5, Buy), 13, 2, (2, 0)),
            ],
        ),
    ]
}

pub(super) fn auctions() -> Vec<DocumentedCase> {
    vec![
        case(
            "auction: the largest volume",
            XETRA,
            &[],
            gathered(&[
                limit(1, Buy, 12, 5),
                limit(2, Buy, 11, 4),
                limit(3, Sell, 9, 6),
                limit(4, Sell, 11, 3),
            ]),
            &[
                Uncrossed { instrument: 0, price: 11, volume: 9 },
                trade(0, (3, 1, Buy), 11, 5, (1, 0)),
                trade(1, (3, 2, Buy), 11, 1, (0, 3)),
                trade(2, (4, 2, Buy), 11, 3, (0, 0)),
            ],
        ),
        case(
            "auction: then the smallest surplus",
            XETRA,
            &[],
            gathered(&[limit(1, Buy, 14, 5), limit(2, Sell, 12, 5), limit(3, Buy, 12, 4)]),
            &[Uncrossed { instrument: 0, price: 13, volume: 5 }, trade(0, (2, 1, Buy), 13, 5, (0, 0))],
        ),
        case(
            "auction: then nearest to the reference price, which is 10",
            XETRA,
            &[],
            gathered(&[limit(1, Buy, 14, 5), limit(2, Sell, 8, 5)]),
            &[Uncrossed { instrument: 0, price: 10, volume: 5 }, trade(0, (2, 1, Buy), 10, 5, (0, 0))],
        ),
        case(
            "auction: nothing crosses",
            XETRA,
            &[],
            gathered(&[limit(1, Buy, 8, 5), limit(2, Sell, 9, 5)]),
            &[Uncrossed { instrument: 0, price: 0, volume: 0 }],
        ),
        case(
            "auction: an iceberg takes part with all of it",
            XETRA,
            &[],
            gathered(&[iceberg(2, limit(1, Sell, 10, 9)), limit(2, Sell, 10, 4), limit(3, Buy, 10, 10)]),
            &[
                Uncrossed { instrument: 0, price: 10, volume: 10 },
                trade(0, (1, 3, Buy), 10, 9, (0, 1)),
                trade(1, (2, 3, Buy), 10, 1, (3, 0)),
            ],
        ),
        case(
            "auction: no self-trade prevention",
            JPX,
            &[],
            gathered(&[
                preventing(CancelBoth, limit(1, Sell, 10, 1)),
                preventing(CancelBoth, limit(2, Buy, 10, 1)),
            ]),
            &[Uncrossed { instrument: 0, price: 10, volume: 1 }, trade(0, (1, 2, Buy), 10, 1, (0, 0))],
        ),
        case(
            "auction: no post-only orders",
            COINBASE_RULES,
            &[],
            CaseInput(vec![AUCTION], Command::New(post_only(limit(1, Buy, 8, 1)))),
            &[Rejected { id: 1, reason: RejectReason::WrongPhase }],
        ),
        case(
            "auction: no fill or kill, no immediate or cancel",
            CME_QUALIFIERS,
            &[],
            CaseInput(vec![AUCTION], Command::New(lasting(FillOrKill, limit(1, Buy, 8, 1)))),
            &[Rejected { id: 1, reason: RejectReason::WrongPhase }],
        ),
    ]
}
