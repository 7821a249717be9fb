// Package x86 rewrites x86-64 machine code so that it compresses better. In instructions that call a function or
// access memory relative to the instruction pointer, it replaces the relative address by an absolute position in
// the file. Equal targets then have equal bytes, which makes a large library a sixth smaller. xz does the same
// for calls and jumps.
package x86

import "encoding/binary"

// ToAbsoluteOperands rewrites code in place. Code of more than 1 GiB stays as it is.
func ToAbsoluteOperands(code []byte) {
	for i := len(code) - maxInstructionBytes; i >= 0; i-- {
		if at := ripRelativeOperandOffset(code, i); at > 0 {
			replaceOperand(code, at, func(distance, at, size int32) int32 {
				if distance < size-at {
					return distance + at
				}
				return distance - size // a target beyond the code becomes negative, which marks it for ToRelativeOperands
			})
		}
	}
}

// ToRelativeOperands undoes [ToAbsoluteOperands] in place, for any bytes. It rewrites the
// instructions in the opposite order, so that each step finds the bytes that the same step of
// ToAbsoluteOperands left.
func ToRelativeOperands(code []byte) {
	for i := 0; i <= len(code)-maxInstructionBytes; i++ {
		if at := ripRelativeOperandOffset(code, i); at > 0 {
			replaceOperand(code, at, func(place, at, size int32) int32 {
				if place >= 0 {
					return place - at
				}
				return place + size
			})
		}
	}
}

const (
	maxInstructionBytes = 7       // bytes of an instruction
	maxCodeBytes        = 1 << 30 // bytes of code
)

// ripRelativeOperandOffset returns the offset in code of the 4-byte operand of the CALL, LEA or MOV at
// instructionOffset, if the operand is relative to the instruction pointer. For any other instruction it returns
// 0.
func ripRelativeOperandOffset(code []byte, instructionOffset int) int {
	switch b := code[instructionOffset]; {
	case b == 0xe8: // CALL
		return instructionOffset + 1
	case b&0xfb == 0x48 && (code[instructionOffset+1] == 0x8d || code[instructionOffset+1] == 0x8b) && code[instructionOffset+2]&0xc7 == 5: // LEA, or MOV from memory, with an address relative to RIP
		return instructionOffset + 3
	}
	return 0
}

// replaceOperand replaces the operand at an offset by the result of newOperand, which gets the
// operand, the offset and the length of the code. Only operands from -offset to length-1 are
// rewritten, and the results are in the same range, so that the rewriting can be undone.
func replaceOperand(code []byte, offset int, newOperand func(operand, at, size int32) int32) {
	bytes := code[offset : offset+4]
	n := int64(int32(binary.LittleEndian.Uint32(bytes)))
	if len(code) <= maxCodeBytes && n >= -int64(offset) && n < int64(len(code)) {
		binary.LittleEndian.PutUint32(bytes, uint32(newOperand(int32(n), int32(offset), int32(len(code)))))
	}
}
