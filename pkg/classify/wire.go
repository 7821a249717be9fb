package classify

import (
	"encoding/binary"
	"errors"
)

var errMalformedONNX = errors.New("not an ONNX file, or damaged")

// eachProtoField calls f for each field of a message in protobuf wire format, with its number and an unsigned or a
// bytes value. Groups are rejected: ONNX files have none.
func eachProtoField(data []byte, f func(number, n uint64, value []byte) error) error {
	for len(data) > 0 {
		tag, used := binary.Uvarint(data)
		if used <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
			return errMalformedONNX
		}
		data = data[used:]
		var n uint64
		var value []byte
		switch tag & 7 {
		case 0: // varint
			n, used = binary.Uvarint(data)
		case 1: // 64 bits
			used = 8
		case 2: // bytes
			length, before := binary.Uvarint(data)
			if before <= 0 || length > uint64(len(data)-before) {
				return errMalformedONNX
			}
			used = before + int(length)
			value = data[before:used:used]
		case 5: // 32 bits
			used = 4
		default:
			return errMalformedONNX
		}
		if used <= 0 || used > len(data) {
			return errMalformedONNX
		}
		data = data[used:]
		if err := f(tag>>3, n, value); err != nil {
			return err
		}
	}
	return nil
}
