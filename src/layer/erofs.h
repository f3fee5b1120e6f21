/* erofs.h - the part of the EROFS format that checkpoint layers use. Integers are little endian.
 *
 *   block 0          the superblock at byte 1024, otherwise zeros
 *   blocks 1 ...     content of files, targets of links, folders; unused blocks are allowed
 *   meta_blkaddr     inodes, the root first: 64 bytes and their attributes, in slots of 32 bytes
 *
 * Uncompressed, blocks of 4096 bytes, no optional feature. An inode does not cross the end of a block;
 * its attributes may. A folder is sorted by name, with "." and "..". A deleted name is a character device
 * 0:0; with EROFS_LOCAL in its time, it hides only what other layers of the same chain have. A folder that hides lower layers has the attribute user.overlay.opaque with the value "y". */
#pragma once
#include <stdint.h>

#define EROFS_MAGIC 0xE0F5E1E2u
#define EROFS_BLOCK 4096u
#define EROFS_SUPER 1024u /* offset of the superblock */
#define EROFS_SLOT 32u
#define EROFS_EXTENDED 1u /* i_format: an inode of 64 bytes, FLAT_PLAIN */
#define EROFS_NAME 255u
#define EROFS_LINK 4095u               /* bytes of a target */
#define EROFS_XATTR_USER 1u            /* index of "user." */
#define EROFS_XATTR_VALUE 65535u       /* bytes of a value */
#define EROFS_XATTRS (12 + 4 * 65534u) /* bytes of all attributes of an inode */
#define EROFS_OWNER_MAX 65535u

#define EROFS_LOCAL 1u /* mtime_nsec of a deleted name */

enum erofs_type { EROFS_REG = 1, EROFS_DIR, EROFS_CHR, EROFS_FIFO = 5, EROFS_SYMLINK = 7 };

struct erofs_super { /* 128 bytes; the fields without a name here are 0 */
	uint32_t magic, checksum, feature_compat;
	uint8_t blkszbits, sb_extslots;
	uint16_t root_nid;
	uint64_t inos, build_time;
	uint32_t build_time_nsec, blocks, meta_blkaddr, xattr_blkaddr;
	uint8_t zeros[128 - 48];
};
_Static_assert(sizeof(struct erofs_super) == 128, "no padding");

struct erofs_inode {
	uint16_t format, xattr_icount, mode, nb;
	uint64_t size;
	uint32_t block; /* first block of the content; of a device: 0; of what has no content: ~0 */
	uint32_t ino;
	uint32_t uid, gid;
	uint64_t mtime;
	uint32_t mtime_nsec, nlink;
	uint8_t zeros[16];
};
_Static_assert(sizeof(struct erofs_inode) == 64, "no padding");

struct erofs_dirent {
	uint64_t nid;
	uint16_t nameoff;
	uint8_t type, zero;
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_dirent) == 12, "no padding");

struct erofs_xattr_head { /* before the attributes of an inode */
	uint32_t name_filter;
	uint8_t shared_count, zeros[7];
};
_Static_assert(sizeof(struct erofs_xattr_head) == 12, "no padding");

struct erofs_xattr {
	uint8_t name_len, name_index;
	uint16_t value_size;
};
