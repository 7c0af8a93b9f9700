/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* aeth.h: the syndrome of an ACK extended header. */
#ifndef NOPIN_WIRE_AETH_H
#define NOPIN_WIRE_AETH_H

/* AETH syndrome (IBTA 9.7.5.2.1): two type bits and five of value */
enum aeth_kind { AETH_ACK = 0x00, AETH_RNR = 0x20, AETH_NAK = 0x60 };
enum { AETH_KIND_MASK = 0x60, AETH_VALUE_MASK = 0x1f };
enum { AETH_CREDIT_INVALID = 0x1f }; /* "no end-to-end credits" */
enum nak_code {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATION = 3,
};

#endif
