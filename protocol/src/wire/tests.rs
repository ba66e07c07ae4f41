use super::*;
use proptest::prelude::*;

fn terms() -> impl Strategy<Value = OrderTerms> {
    (0usize..4, 0usize..4, any::<bool>(), 0usize..5, 0u8..5, any::<u64>()).prop_map(
        |(order_type, time_in_force, post_only, self_trade, condition, word)| OrderTerms {
            order_type: OrderType::ALL[order_type],
            time_in_force: TimeInForce::ALL[time_in_force],
            post_only,
            self_trade: SelfTrade::ALL[self_trade],
            condition: match condition {
                0 => OrderCondition::None,
                1 => OrderCondition::StopPrice(word.cast_signed()),
                2 => OrderCondition::Display(word),
                3 => OrderCondition::Minimum(word),
                _ => OrderCondition::Lifetime(word),
            },
        },
    )
}

const OPERATIONS: [Operation; 4] =
    [Operation::New, Operation::Cancel, Operation::Replace, Operation::MassCancel];

proptest! {
    #[test]
    fn orders_round_trip_through_messages(
        (strategy, epoch, sequence) in (0u16..256, 0..=MAX_EPOCH, 0..=MAX_SEQUENCE), venue: u16, instrument: u16,
        delay_ns: u64, price: i64, quantity: u64, target: u64, operation in 0usize..4, sell: bool, trigger: u64,
        terms in terms(),
    ) {
        let operation = OPERATIONS[operation];
        let is_new = operation == Operation::New;
        let request = OrderRequest {
            venue, instrument, delay_ns, price, quantity, operation, trigger,
            target: if is_new { 0 } else { target },
            terms: if is_new { terms } else { OrderTerms::default() },
            side: if sell { Side::Sell } else { Side::Buy },
        };
        let order = request.with_id(OrderId::new(strategy, epoch, sequence));
        prop_assert_eq!(Order::from_message(order.to_message()), Ok(order));
        prop_assert_eq!(order.id.to_string().parse::<OrderId>(), Ok(order.id));
        prop_assert_eq!(Instruction::from_message(order.to_message()), Ok(Instruction::Order(order)));
    }

    #[test]
    fn orders_never_decode_as_mass_cancel(word in 0u64..1 << 58, instrument: u16, strategies: bool, instruments: bool) {
        let all = Instruction::CancelAll(CancelScope {
            strategy: strategies.then(|| OrderId::from_word(word)),
            instrument: instruments.then_some(instrument),
        });
        prop_assert_eq!(Instruction::from_message(all.to_message()), Ok(all));
        prop_assert_eq!(Order::from_message(all.to_message()), Err(WireError::BadOperation));
    }

    #[test]
    fn arbitrary_words_never_panic(message: [u64; MESSAGE_WORDS]) {
        let _ = Order::from_message(message);
        let _ = Report::from_message(message);
        let _ = Instruction::from_message(message);
    }

    #[test]
    fn unknown_codes_are_refused(code in 0u8..64, rules: u8, kind: u8) {
        let mut message = Order::new(OrderId::new(1, 0, 1), 0).to_message();
        message[6] = u64::from(code) << 32 | u64::from(kind) << 48 | u64::from(rules) << 56;
        let is_known = match code {
            1 => kind & 0xF < 4 && kind >> 4 < 4 && rules & 7 < 5 && rules >> 4 < 5,
            2 | 4 | 5 => kind == 0 && rules == 0,
            _ => false,
        };
        prop_assert_eq!(Order::from_message(message).is_ok(), is_known);
    }

    #[test]
    fn reports_round_trip_through_messages(
        word in 0u64..1 << 58, venue: u16, instrument: u16, reason: u8, price: i64, filled: u64, leaves: u64,
        cumulative: u64, number in 0u8..128, is_last: bool, status in 0usize..11,
    ) {
        let report = Report {
            id: OrderId::from_word(word), venue, instrument, status: OrderStatus::ALL[status], reason, side: Side::Sell, price,
            filled, leaves, cumulative, number, is_last,
        };
        prop_assert_eq!(Report::from_message(report.to_message()), Ok(report));
        prop_assert_eq!(Report::parse_stamp_detail(report.stamp_detail()), (number, is_last));
    }
}

#[test]
fn scope_contains_exactly_what_it_names() {
    let of = |strategy, epoch| OrderId::new(strategy, epoch, 7);
    let dead = CancelScope::for_strategy(of(3, 2));
    assert!(dead.contains(of(3, 2), 5) && dead.contains(of(3, 0), 0));
    assert!(!dead.contains(of(3, 3), 5) && !dead.contains(of(4, 2), 5));
    let instrument = CancelScope { strategy: None, instrument: Some(5) };
    assert!(instrument.contains(of(9, 9), 5) && !instrument.contains(of(9, 9), 6));
    let both = CancelScope { instrument: Some(5), ..dead };
    assert!(both.contains(of(3, 1), 5) && !both.contains(of(3, 1), 6) && !both.contains(of(2, 1), 5));
    assert!(CancelScope::default().contains(of(1, 1), 1));
}

#[test]
fn invalid_order_ids_are_refused() {
    for text in ["", "3", "3/", "/4", "999/1", "1.1024/0", "1/99999999999999999", "a/b"] {
        assert_eq!(text.parse::<OrderId>(), Err(WireError::BadOrderId), "{text}");
    }
}
